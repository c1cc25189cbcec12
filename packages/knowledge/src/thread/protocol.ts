// Messages between the main thread and the threads that hold the database.
import type { Embed } from '../embedder.ts'
import type { KnowledgeErrorCode } from '../errors.ts'
import type { IndexJob, IndexReport } from '../indexing/indexing.ts'
import type { IndexProgress } from '../progress.ts'
import type { ChannelAnswers, ChannelsQuery, DocumentInfo, Problem } from '../search/reading.ts'

/** The requests to a thread. */
export interface Requests {
  index(job: IndexJob): IndexReport
  forget(paths: readonly string[]): number
  channels(query: ChannelsQuery): ChannelAnswers
  documents(): readonly DocumentInfo[]
  problems(): readonly Problem[]
  roots(): readonly string[]
}

export type ToThread =
  | { readonly type: 'request'; readonly id: number; readonly name: keyof Requests; readonly argument: unknown }
  | { readonly type: 'cancel' }
  | { readonly type: 'embedded'; readonly vectors: readonly Float32Array[] }
  /** `index` is the place of the text that is the reason, where one is. */
  | { readonly type: 'embedding.failed'; readonly message: string; readonly index: number | undefined }
  | { readonly type: 'close' }

export type FromThread =
  | { readonly type: 'answer'; readonly id: number; readonly value: unknown }
  | { readonly type: 'error'; readonly id: number; readonly code: KnowledgeErrorCode; readonly message: string }
  | { readonly type: 'progress'; readonly progress: IndexProgress }
  /** The main thread has the embedder. */
  | { readonly type: 'embed'; readonly texts: Parameters<Embed>[0] }
