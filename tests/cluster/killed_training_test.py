"""${checkpoint} on a cluster whose pods share files with the driver."""

import unittest

from support_cluster import ClusterTest, needs_cluster, needs_test_bed
from support_training import KilledTraining


@needs_cluster
@needs_test_bed
class SharedCheckpoints(KilledTraining, ClusterTest):
    def checkpoints(self) -> list[str]:
        return [str(folder) for folder in (self.state / "checkpoints").iterdir()]

    def test_a_training_killed_at_random_ends_with_the_weights_of_an_undisturbed_one(self):
        self.check_killed_training()


if __name__ == "__main__":
    unittest.main()
