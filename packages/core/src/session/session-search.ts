// Searches the text of sessions. It reads the journals themselves, newest first and a bounded number of events
// at once: that works on every back end, without a second copy of the messages.
import { defined } from '../checks/defined.ts'
import { anyText, anything, callable, count, type Fields, text } from '../checks/fields.ts'
import { shownText } from '../events/blocks.ts'
import type { Block, Event } from '../events/types.ts'
import { assertId } from '../journal/ids.ts'
import type { Journal, SessionKey } from '../ports.ts'
import { checkOption } from './option-fields.ts'

export interface SessionSearch {
  readonly tenant: string
  readonly user: string
  /** Default: all sessions of the user. */
  readonly session?: string
  /** Words, all of which must occur in one message, in any case. */
  readonly text: string
  /** Hits. Default 20; a page may exceed it to end with whole sessions. */
  readonly limit?: number
  /** `next` of the page before. */
  readonly before?: number
  /** How much is read for one page. Default 20,000. */
  readonly maxEvents?: number
  /** Texts to leave out, for example the output of an earlier search. */
  readonly skip?: (said: Said) => boolean
}

export interface SessionHit {
  readonly session: string
  readonly title: string
  readonly turnId: string
  readonly seq: number
  /** Milliseconds since 1970. */
  readonly at: number
  readonly role: Said['role']
  /** The text around the first word, at most 240 characters. */
  readonly text: string
}

export interface SessionHits {
  readonly hits: readonly SessionHit[]
  /** Where the next page begins, when there may be one. */
  readonly next?: number
  /** False when a session was longer than the part that is read for one page. */
  readonly complete: boolean
}

/** Something that a person, a model or a tool has said; `agent`: another agent, as a task or as a result. */
export interface Said {
  readonly role: 'user' | 'agent' | 'assistant' | 'call' | 'result'
  readonly text: string
  /** Of a call and a result. */
  readonly callId?: string
  /** Of a call; and, for `skip`, of a result. */
  readonly tool?: string
}

const PER_SESSION = 3
const READ_AT_ONCE = 500

/** The text of an event, without reasoning. */
export function saidIn(event: Event): Said[] {
  switch (event.type) {
    case 'turn.started':
      return saidAs(event.delegation === undefined ? 'user' : 'agent', event.input)
    case 'turn.steered':
      return saidAs(event.origin ?? 'user', event.input)
    case 'child.closed':
      // The result of a call that waited is in that message.
      return saidAs('agent', event.input ?? [])
    case 'model.finished':
      return [...saidAs('assistant', event.message.blocks), ...event.message.blocks.flatMap(callIn)]
    case 'call.finished':
      return saidAs('result', event.content).map((it) => ({ ...it, callId: event.callId }))
    default:
      return []
  }
}

function saidAs(role: Said['role'], blocks: readonly Block[]): Said[] {
  const text = shownText(blocks)
  return text === '' ? [] : [{ role, text }]
}

function callIn(block: Block): Said[] {
  if (block.type !== 'call') return []
  const { callId, tool } = block
  return [{ role: 'call', text: `${tool} ${readable(block.arguments)}`, callId, tool }]
}

/** Models write non-Latin letters literally, or as escapes that a search would miss. */
function readable(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json))
  } catch {
    return json
  }
}

const FIELDS: Fields<SessionSearch> = {
  tenant: text,
  user: text,
  session: text,
  text: anyText,
  limit: count,
  before: anything,
  maxEvents: count,
  skip: callable,
}

/**
 * The newest hits, of at most three in each session; of one session, all of them up to `limit`.
 *
 * @throws OxbowError `invalid_option`, `invalid_id`
 * @example
 * const { hits } = await searchSessions(backend.journal, { tenant: 'default', user: 'ann', text: 'invoice 4711' })
 */
export async function searchSessions(journal: Journal, search: SessionSearch): Promise<SessionHits> {
  // A user who is missing would mean all users.
  checkOption('searchSessions()', search, FIELDS)
  const { tenant, session, text: said, limit = 20, maxEvents = 20_000, skip } = search
  const user = assertId(search.user, 'user')
  assertId(tenant, 'tenant')
  const words = (said ?? '').split(/\s+/).filter(Boolean).map(inAnyCase)
  const wanted = { words, skip }
  if (words.length === 0) return { hits: [], complete: true }
  const hits: SessionHit[] = []
  const room = { events: maxEvents }
  if (session !== undefined) {
    const key = { tenant, user, session }
    const complete = await searchOne(
      journal,
      { key, title: '', head: await journal.head(key) },
      wanted,
      limit,
      room,
      hits,
    )
    return { hits, complete }
  }
  let complete = true
  for (let before = search.before; ; ) {
    const page = await journal.list({ tenant, user, limit: READ_AT_ONCE / 10, ...defined({ before }) })
    if (page.length === 0) return { hits, complete }
    for (const [n, row] of page.entries()) {
      complete = (await searchOne(journal, row, wanted, PER_SESSION, room, hits)) && complete
      before = row.updatedAt
      // Sessions of one millisecond belong to one page: `before` could not separate them.
      const last = page[n + 1]?.updatedAt !== before
      if (last && (hits.length >= limit || room.events <= 0)) return { hits, complete, next: before }
    }
  }
}

/** Adds up to `most` hits, from the end of the session. Returns whether all fitted. */
async function searchOne(
  journal: Journal,
  { key, title, head }: { readonly key: SessionKey; readonly title: string; readonly head: number },
  { words, skip }: { readonly words: readonly RegExp[]; readonly skip: SessionSearch['skip'] },
  most: number,
  room: { events: number },
  hits: SessionHit[],
): Promise<boolean> {
  let found = 0
  for (let end = head; end > 0; end -= READ_AT_ONCE) {
    if (room.events <= 0) return false
    const start = Math.max(0, end - READ_AT_ONCE)
    const events = await journal.read(key, start, end - start)
    room.events -= events.length
    for (const event of events.toReversed())
      for (const said of saidIn(event)) {
        const at = placeOf(said.text, words)
        if (at === undefined) continue
        if (skip?.(said.role === 'result' ? await withTool(journal, key, events, said, room) : said)) continue
        const { seq } = event
        const turnId = event.type === 'session.opened' ? '' : event.turnId
        hits.push({
          session: key.session,
          title,
          turnId,
          seq,
          at: event.at,
          role: said.role,
          text: excerpt(said.text, at),
        })
        if (++found >= most) return true
      }
    // Others may have their turn between pages.
    await new Promise(setImmediate)
  }
  return true
}

/** A result with its tool: its call precedes it, in `events` or on an earlier page. */
async function withTool(
  journal: Journal,
  key: SessionKey,
  events: readonly Event[],
  said: Said,
  room: { events: number },
): Promise<Said> {
  for (let page = events; page.length > 0; ) {
    const call = page.flatMap(saidIn).find((it) => it.role === 'call' && it.callId === said.callId)
    if (call !== undefined) return { ...said, tool: call.tool! }
    const end = page[0]!.seq - 1
    const start = Math.max(0, end - READ_AT_ONCE)
    if (end === 0 || room.events <= 0) break
    page = await journal.read(key, start, end - start)
    room.events -= page.length
  }
  return said
}

/** Lower case may be longer than what it was made of: places in it are not those in the text. */
const inAnyCase = (word: string): RegExp => new RegExp(word.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'), 'iu')

/** The position of the first word, if all words occur. */
function placeOf(text: string, words: readonly RegExp[]): number | undefined {
  const places = words.map((it) => text.search(it))
  return places.includes(-1) ? undefined : Math.min(...places)
}

const AROUND = 80

function excerpt(text: string, at: number): string {
  const start = Math.max(0, at - AROUND)
  const part = text.slice(start, at + 2 * AROUND).replace(/\s+/g, ' ')
  return `${start > 0 ? '…' : ''}${part}${at + 2 * AROUND < text.length ? '…' : ''}`.toWellFormed()
}
