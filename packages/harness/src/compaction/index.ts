// By itself, for who needs no more of this package: `@oxbow/harness/compaction`.
export { compaction } from './compaction.ts'
export type { CompactionOptions } from './options.ts'
