// A separate entry for users of compaction alone: `@oxbow/harness/compaction`.
export { compaction } from './compaction.ts'
export type { CompactionOptions } from './options.ts'
