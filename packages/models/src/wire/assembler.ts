// What a wire format must offer so that `exchange` can read its answers.
import type { FinishReason, ModelReply } from '@oxbow/core'

export interface ReplyAssembler {
  /**
   * Takes one parsed frame, or a whole answer that was not streamed. Returns the frame's error object, or `native` for
   * DashScope's own format, or `calls` when it opens one call too many, or undefined when all is well.
   */
  frame(frame: object): WireFault | undefined
  /** The provider gave a reason to end, so what is there is whole. */
  readonly complete: boolean
  /** The format has said that nothing more will come. */
  readonly ended: boolean
  /** Some part of the answer has come. */
  readonly started: boolean
  /** The reply as it stands. `finishReason` overrides the provider's, for an answer that did not come to its end. */
  reply(finishReason?: FinishReason): ModelReply
}

export type WireFault = { readonly type: 'error'; readonly error: unknown } | { readonly type: 'native' | 'calls' }
