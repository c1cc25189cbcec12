// What a format must offer so that `exchange` can read its answers.
import type { FinishReason, ModelReply } from '@oxbow/core'

export interface ReplyAssembler {
  /** Adds one parsed frame, or a whole answer that was not streamed. Returns the problem, if there is one. */
  frame(frame: object): WireFault | undefined
  /** The provider sent a finish reason, so the answer is whole. */
  readonly complete: boolean
  /** A `[DONE]` at this point ends the answer even without a finish reason. */
  readonly mayEnd: boolean
  /** The format has signalled that nothing more follows. */
  readonly ended: boolean
  /** Part of the answer has arrived. */
  readonly started: boolean
  /** The reply so far. `finishReason` overrides the provider's, for an answer that is not whole. */
  reply(finishReason?: FinishReason): ModelReply
}

export type WireFault =
  /** A provider's error object. */
  | { readonly type: 'error'; readonly error: unknown }
  /** DashScope's own format. */
  | { readonly type: 'native' }
  /** One call more than an answer may hold. */
  | { readonly type: 'calls' }
  /** Another answer begins before this one has ended. */
  | { readonly type: 'cut' }
  /** The answer has ended and holds nothing but parts that no driver of ours reads. */
  | { readonly type: 'unread'; readonly kinds: readonly string[] }
