// Server-sent events of AG-UI: `data:` lines with one JSON object each, and `id:` lines with the sequence number of the
// journal.
import type * as AgUi from '@ag-ui/core'

export const PROTOCOL_VERSION = '1.0'

type Plain<T> = T extends { type: infer Type } ? Omit<T, 'type'> & { type: `${Type & string}` } : never

/** The events that this server sends. */
export type AgUiFrame = Plain<
  | AgUi.RunStartedEvent
  | AgUi.RunFinishedEvent
  | AgUi.RunErrorEvent
  | AgUi.TextMessageStartEvent
  | AgUi.TextMessageContentEvent
  | AgUi.TextMessageEndEvent
  | AgUi.ReasoningStartEvent
  | AgUi.ReasoningMessageStartEvent
  | AgUi.ReasoningMessageContentEvent
  | AgUi.ReasoningMessageEndEvent
  | AgUi.ReasoningEndEvent
  | AgUi.ToolCallStartEvent
  | AgUi.ToolCallArgsEvent
  | AgUi.ToolCallEndEvent
  | AgUi.ToolCallResultEvent
  | AgUi.CustomEvent
>

/** The form of a stream for clients that depend on an older service's exact output; see docs/compare/yoke.md. */
export interface Strict {
  readonly threadId: string
  readonly runId: string
  /** The request, which RUN_STARTED repeats. */
  readonly input: unknown
}

/** Adds the ids of the run to every event, and encodes tool results as JSON. */
function strictly(frame: AgUiFrame, { threadId, runId, input }: Strict): object {
  const { type, ...rest } = frame
  return {
    type,
    threadId,
    runId,
    ...rest,
    ...(frame.type === 'RUN_STARTED' && { input }),
    ...(frame.type === 'TOOL_CALL_RESULT' && { content: JSON.stringify(frame.content) }),
  }
}

export interface FrameWriter {
  frame(frame: AgUiFrame): void
  /** Writes a frame as `prefix` + the text as JSON + `}`: the hot path. */
  fragment(prefix: string, text: string): void
  /** All frames of the event with this number have been written. */
  reached(seq: number): void
  /** Returns the output since the last call. */
  take(): string
}

/**
 * The number of an event goes with the last frame of that event, so that a client that was disconnected between its
 * frames gets them all again. The number of an event without frames goes with the next frame.
 */
export function frameWriter(strict?: Strict): FrameWriter {
  const ids = strict && `"threadId":${JSON.stringify(strict.threadId)},"runId":${JSON.stringify(strict.runId)},`
  let text = ''
  let last = ''
  let seq = 0
  let sentSeq = 0
  const flush = (): void => {
    if (last === '') return
    text += last
    last = ''
  }
  const data = (json: string): void => {
    flush()
    if (seq > sentSeq && strict === undefined) {
      text += `id: ${seq}\n`
      sentSeq = seq
    }
    last = `data: ${json}\n\n`
  }
  return {
    frame: (frame) => data(strict === undefined ? JSON.stringify(frame) : JSON.stringify(strictly(frame, strict))),
    fragment: (prefix, fragment) =>
      data(`${ids === undefined ? prefix : prefix.replace(',', `,${ids}`)}${JSON.stringify(fragment)}}`),
    reached(reached) {
      seq = reached
      if (last === '' || strict !== undefined) return
      last = `id: ${seq}\n${last}`
      sentSeq = seq
    },
    take() {
      flush()
      const taken = text
      text = ''
      return taken
    },
  }
}
