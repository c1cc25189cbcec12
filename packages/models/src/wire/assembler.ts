// What a wire format must offer so that `exchange` can read its answers.
import type { FinishReason, ModelReply } from '@oxbow/core'

export interface ReplyAssembler {
  /** Takes one parsed frame, or a whole answer that was not streamed. Returns what is wrong, if anything is. */
  frame(frame: object): WireFault | undefined
  /** The provider gave a reason to end, so what is there is whole. */
  readonly complete: boolean
  /** A `[DONE]` that comes now ends the answer, although no reason was given. */
  readonly mayEnd: boolean
  /** The format has said that nothing more will come. */
  readonly ended: boolean
  /** Some part of the answer has come. */
  readonly started: boolean
  /** The reply as it stands. `finishReason` overrides the provider's, for an answer that did not come to its end. */
  reply(finishReason?: FinishReason): ModelReply
}

export type WireFault =
  /** An error object of the provider. */
  | { readonly type: 'error'; readonly error: unknown }
  /** DashScope's own format. */
  | { readonly type: 'native' }
  /** One call more than an answer may hold. */
  | { readonly type: 'calls' }
  /** Another answer begins before this one has ended. */
  | { readonly type: 'cut' }
  /** The answer has ended and holds nothing but parts that no driver of ours reads. */
  | { readonly type: 'unread'; readonly kinds: readonly string[] }
