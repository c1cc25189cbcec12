// Tools with which an agent searches and reads earlier conversations: this session, or others of the same user.
import {
  type Event,
  type InputBlock,
  type Journal,
  type SessionKey,
  searchSessions,
  ToolError,
  tool,
} from '@oxbow/core'
import { bounded, type Said, saidIn } from '@oxbow/core/internal'

const PAGE = 8_000

/** The calling session decides whose sessions are searched, never the arguments. */
const own = ({ tenant, user }: SessionKey, session: string): SessionKey => ({ tenant, user, session })

/** The input and output of these tools, which searches would find over and over. */
const isOurs = ({ tool }: Said): boolean => tool === 'session_search' || tool === 'session_read'

export const sessionSearch = (journal: Journal) =>
  tool({
    name: 'session_search',
    description:
      'Searches everything that was said, called and returned in this session, or with "everywhere" in all sessions of ' +
      'this user, the newest first. All words must occur in one message, in any case. Read more with session_read.',
    effects: ['read'],
    input: {
      type: 'object',
      properties: {
        query: { type: 'string', minLength: 1, maxLength: 200 },
        everywhere: { type: 'boolean', default: false },
        limit: { type: 'integer', minimum: 1, maximum: 20, default: 8 },
      },
      required: ['query'],
      additionalProperties: false,
    },
    async run(input, { session }) {
      const { query, everywhere = false, limit = 8 } = input as { query: string; everywhere?: boolean; limit?: number }
      const { tenant, user } = session
      const only = everywhere ? {} : { session: session.session }
      const { hits, complete } = await searchSessions(journal, {
        tenant,
        user,
        ...only,
        text: query,
        limit,
        skip: isOurs,
      })
      const rest = complete ? '' : '\n[The search was incomplete; use rarer words.]'
      if (hits.length === 0) return `Nothing was found for ${JSON.stringify(query)}.${rest}`
      const lines = hits.map(
        (it) => `session ${it.session}, seq ${it.seq}, ${new Date(it.at).toISOString()}, ${it.role}: ${it.text}`,
      )
      return bounded('search results', lines.join('\n')) + rest
    },
  })

interface ReadInput {
  readonly session?: string
  readonly call?: string
  readonly turn?: string
  readonly only?: 'user'
  readonly from?: number
  readonly offset?: number
}

export const sessionRead = (journal: Journal) =>
  tool({
    name: 'session_read',
    description:
      'Reads what was said in this session, or in another of this user: all from event "from" on, one "call" with its ' +
      'arguments and its result, one "turn", or with "only": "user" what the user has said. Gives pages.',
    effects: ['read'],
    input: {
      type: 'object',
      properties: {
        session: { type: 'string', description: 'Default: this one.' },
        call: { type: 'string' },
        turn: { type: 'string' },
        only: { enum: ['user'] },
        from: { type: 'integer', minimum: 1, default: 1 },
        offset: { type: 'integer', minimum: 0, default: 0, description: 'Characters of the first event to skip.' },
      },
      additionalProperties: false,
    },
    async run(input, context) {
      const wanted = input as ReadInput
      const key = own(context.session, wanted.session ?? context.session.session)
      if ((await journal.head(key)) === 0) throw new ToolError(`No session ${JSON.stringify(key.session)}.`)
      const { text, next, files } = await readPage(journal, key, wanted)
      if (text === '') throw new ToolError('Nothing found in this session.')
      const more = next === undefined ? '' : `[There is more: session_read ${JSON.stringify({ ...wanted, ...next })}]`
      return [{ type: 'text', text: `Session ${key.session}:\n${text}${more}` }, ...files]
    },
  })

interface Page {
  readonly text: string
  readonly next?: { readonly from: number; readonly offset: number }
  readonly files: readonly InputBlock[]
}

async function readPage(journal: Journal, key: SessionKey, wanted: ReadInput): Promise<Page> {
  const { from = 1, offset = 0 } = wanted
  const files: InputBlock[] = []
  let text = ''
  for (let after = from - 1; ; ) {
    const events = await journal.read(key, after)
    if (events.length === 0) return { text, files }
    for (const event of events) {
      /** Characters of this event before the next part. */
      let before = 0
      for (const said of isWanted(event, wanted) ? saidIn(event) : []) {
        if (wanted.call !== undefined && said.callId !== wanted.call) continue
        const start = event.seq === from ? Math.max(0, offset - before) : 0
        const end = start + Math.max(0, PAGE - text.length)
        // Each has its own marks, so that no event can imitate another one.
        if (start < said.text.length && start < end)
          text += `${bounded(`seq ${event.seq}, ${said.role}`, said.text.slice(start, end))}\n`
        if (end < said.text.length) return { text, files, next: { from: event.seq, offset: before + end } }
        before += said.text.length
      }
      // For one call or turn the files are shown too: they may be the omitted part.
      if ((wanted.call ?? wanted.turn) !== undefined && isWanted(event, wanted)) files.push(...filesIn(event))
    }
    after = events.at(-1)!.seq
  }
}

function isWanted(event: Event, { call, turn, only }: ReadInput): boolean {
  if (turn !== undefined && !('turnId' in event && event.turnId === turn)) return false
  if (only === 'user' && event.type !== 'turn.started' && event.type !== 'turn.steered') return false
  if (call === undefined) return true
  return event.type === 'model.finished' || (event.type === 'call.finished' && event.callId === call)
}

function filesIn(event: Event): InputBlock[] {
  const blocks =
    event.type === 'call.finished'
      ? event.content
      : event.type === 'turn.started' || event.type === 'turn.steered'
        ? event.input
        : []
  return blocks.filter((it) => it.type === 'data')
}
