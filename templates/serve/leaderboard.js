// leaderboard
