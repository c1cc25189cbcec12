// What a scripted model answers: plain data, so that it can also be sent to a server in another process.
import type { Gate } from './gate.ts'

/** A closed gate, or a number of milliseconds. */
export type Hold = Gate | number

export interface ScriptedCall {
  readonly name: string
  /** An object is serialised; a string is sent as it is, also when it is no JSON. Default `{}`. */
  readonly arguments?: unknown
  readonly id?: string
}

/** Token figures as chat completions spells them; the other formats get the same ones in their own words. */
export interface WireUsage {
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly total_tokens?: number
  readonly [detail: string]: unknown
}

/**
 * One answer. Content comes in the order thinking, text, calls. Faults count chunks: one chunk is one SSE frame, the
 * first is number 0; holding at chunk 2 means that two chunks were sent and the third was not.
 */
export interface Reply {
  readonly thinking?: string
  /**
   * The provider's proof of `thinking`: its signature on Anthropic's wire, the sealed reasoning on that of responses.
   * Default: one that names the request.
   */
  readonly signature?: string
  readonly text?: string
  readonly calls?: readonly ScriptedCall[]
  /** Into how many fragments `text` is cut. Default: one per word. */
  readonly chunks?: number
  /** Default: 10 prompt tokens and one completion token per fragment. `null`: the server tells nothing. */
  readonly usage?: WireUsage | null
  /**
   * As chat completions calls it, or a word of the format itself. Default `stop`, or `tool_calls` when there are calls.
   * `null`: the frame with the reason is left out.
   */
  readonly finishReason?: string | null
  /** False leaves the last frame out: `[DONE]`, `message_stop` or `response.completed`. */
  readonly done?: boolean

  /** The body as it is, instead of all of the above: an SSE recording, or pieces that are written one by one. */
  readonly raw?: string | Uint8Array | readonly Uint8Array[]

  /** An answer other than 200, or headers of your own. */
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  /** Sent instead of a stream; objects as JSON. */
  readonly body?: unknown

  readonly beforeHeaders?: Hold
  readonly beforeFirstByte?: Hold
  readonly betweenChunks?: number
  readonly hold?: { readonly atChunk: number; readonly gate: Hold }
  /** The socket is destroyed after so many chunks. */
  readonly cutAfterChunks?: number
  /** The socket is destroyed after so many bytes of the body. */
  readonly cutAfterBytes?: number
  /** Nothing more is sent after so many chunks; the connection stays open until the client leaves or `release()`. */
  readonly silentAfterChunks?: number
  /** A frame that is no JSON goes before this chunk. */
  readonly garbageAt?: number
  /** This chunk is sent twice. */
  readonly duplicateAt?: number
  /** So many keep-alive comments go before each chunk. */
  readonly keepAlives?: number
  /** After the content, in place of the end: the format's frame with this as its error object. */
  readonly error?: unknown
}

/** Decides by the request; `undefined` means that there is no reply to it. */
export type ReplyFunction<Request> = (request: Request) => Reply | undefined | Promise<Reply | undefined>

/** A list is used up in order; `always` answers every request; a function decides per request. */
export type Script<Request> =
  | readonly (Reply | ReplyFunction<Request>)[]
  | { readonly always: Reply }
  | ReplyFunction<Request>
