// The pipeline before it was moved, for comparison: as nf-core's, in small.
nextflow.enable.dsl = 2
params.input = "samples.csv"
params.outdir = "results"
params.min_length = 6
params.skip_qc = false

process QC {
    tag "$sample $lane"
    publishDir "$params.outdir/qc/$sample-$lane"
    errorStrategy "ignore"
    input: tuple val(sample), val(lane), path(reads)
    output: path "quality.json"
    when: !params.skip_qc
    script: "python3 $projectDir/rnaseq.py qc $reads quality.json"
}

process TRIM {
    tag "$sample $lane"
    maxForks 2
    input: tuple val(sample), val(lane), path(reads)
    output: tuple val(sample), path("trimmed.fastq")
    script: "python3 $projectDir/rnaseq.py trim --min-length $params.min_length $reads trimmed.fastq"
}

process COUNT {
    tag sample
    memory { 256.MB * task.attempt }
    errorStrategy { task.exitStatus == 137 ? "retry" : "terminate" }
    maxRetries 2
    publishDir "$params.outdir/$sample"
    input: tuple val(sample), path(reads, stageAs: "?/*"); path genes
    output: path "counts.tsv"
    script: "python3 $projectDir/rnaseq.py count $genes counts.tsv $reads"
}

process REPORT {
    publishDir params.outdir
    input: path counts, stageAs: "?/*"; path quality, stageAs: "?/*"
    output: path "report.tsv"
    script: "python3 $projectDir/rnaseq.py report report.tsv --counts $counts --quality $quality"
}

workflow {
    rows = Channel.fromPath(params.input).splitCsv(header: true).map { [it.sample, it.lane, file(it.fastq)] }
    QC(rows)
    TRIM(rows)
    COUNT(TRIM.out.groupTuple(), file("genes.fasta"))
    REPORT(COUNT.out.collect(), QC.out.collect().ifEmpty([]))
}
