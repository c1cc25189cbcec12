// The official client as the judge: its schemas, verifier and reducer. Its warnings count as errors too.
import { HttpAgent } from '@ag-ui/client'
import type { Frame } from '../test.fixture.ts'

export interface Judged {
  /** The events that passed the client's verifier. */
  readonly events: Frame[]
  /** The conversation that the client has afterwards. */
  readonly messages: readonly { role: string; content?: unknown; id: string }[]
  readonly error: Error | undefined
}

/** Runs a message through the client against a server, or feeds the client a recorded stream. */
export async function runClient(options: {
  readonly url?: string
  readonly wire?: string
  readonly threadId?: string
  readonly text?: string
  readonly signal?: AbortController
}): Promise<Judged> {
  const { url = 'http://given', wire, threadId = 'thread', text = 'Hi', signal } = options
  const events: Frame[] = []
  const agent = new HttpAgent({
    url,
    threadId,
    initialMessages: [{ id: 'm-1', role: 'user', content: text }],
    ...(wire !== undefined && {
      fetch: async () => new Response(wire, { headers: { 'content-type': 'text/event-stream' } }),
    }),
  })
  const { error: consoleError, warn } = console
  const warnings: string[] = []
  console.warn = (...args: unknown[]) => void warnings.push(args.join(' '))
  // The client prints errors and also rejects with them.
  console.error = () => {}
  let error: Error | undefined
  try {
    await agent.runAgent(signal === undefined ? {} : { abortController: signal }, {
      onEvent: ({ event }) => void events.push(event as unknown as Frame),
    })
  } catch (caught) {
    error = caught as Error
  } finally {
    console.warn = warn
    console.error = consoleError
  }
  if (warnings.length > 0) error ??= new Error(warnings.join('\n'))
  return { events, messages: agent.messages as Judged['messages'], error }
}

/** Throws unless the official client accepts every frame without an error or warning. */
export async function accepted(frames: readonly Frame[]): Promise<void> {
  const { events, error } = await runClient({ wire: frames.map((it) => `data: ${JSON.stringify(it)}\n\n`).join('') })
  if (error !== undefined) throw error
  if (events.length !== frames.length)
    throw new Error(`${frames.length} frames were sent and ${events.length} came through`)
}
