// Erases what is stored about a session, a user or a tenant.
import { setTimeout as delay } from 'node:timers/promises'
import { OxbowError } from '../errors.ts'
import type { Principal } from '../events/types.ts'
import type { AuditRecord, Backend, SessionKey, StoreScope } from '../ports.ts'
import type { Session } from '../session/session.ts'

/** A session, all of a user, or all of a tenant. */
export interface ErasureScope {
  readonly tenant: string
  readonly user?: string
  readonly session?: string
}

export interface Erasure {
  readonly sessions: number
  readonly files: number
}

/** How long an open turn may take to stop before its session is erased all the same. */
const STOP_MS = 5_000
/** How often the end of a session may move while it is erased. */
const ATTEMPTS = 20

/**
 * Erases journals, snapshots and files. An open turn is interrupted first; its worker can store nothing afterwards. The
 * audit log keeps who did what and when, without data, and a record of the erasure itself. Sub-agents' sessions are
 * erased with the session that started them. Repeat it after an interruption.
 *
 * @returns how many sessions and files there were
 * @throws OxbowError `session_busy` when a session keeps growing
 * @example await eraseData(engine, { tenant: 'default', user: 'ann' }, { user: 'root' })
 */
export async function eraseData(
  engine: { readonly backend: Backend; session(key: SessionKey): Session },
  scope: ErasureScope,
  principal: Principal,
): Promise<Erasure> {
  const { backend } = engine
  const { tenant, user, session } = scope
  if (session !== undefined && user === undefined)
    throw new OxbowError('invalid_option', 'eraseData(): a session needs its user.')
  const counts = { sessions: 0, files: 0 }
  const eraseOne = async (key: SessionKey): Promise<void> => {
    // Children first: an interrupted erasure still finds them through their parent.
    for (const child of await childrenOf(backend, key)) await eraseOne({ ...key, session: child })
    if (await eraseSession(engine, key)) counts.sessions += 1
    counts.files += await backend.files.erase(key)
  }
  if (session !== undefined) await eraseOne({ tenant, user: user!, session })
  else {
    const within: StoreScope = { tenant, ...(user !== undefined && { user }) }
    for await (const { key } of backend.journal.sessions(within)) await eraseOne(key)
    // Notes, remembered rules, and files of sessions that had none.
    for await (const owner of backend.files.owners(within)) counts.files += await backend.files.erase(owner)
  }
  await backend.journal.note(recordOf(scope, principal, counts))
  return counts
}

async function eraseSession(
  { backend: { journal }, session }: Parameters<typeof eraseData>[0],
  key: SessionKey,
): Promise<boolean> {
  await stop(session(key))
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const head = await journal.head(key)
    const answer = await journal.erase(key, head)
    if (answer.ok) return head > 0
  }
  throw new OxbowError('session_busy', `The session ${key.session} keeps growing while it is erased. Try again.`)
}

/** Interrupts the open turn and those that wait behind it, as far as they can be read. */
async function stop(session: Session): Promise<void> {
  const giveUp = AbortSignal.timeout(STOP_MS)
  try {
    while (!giveUp.aborted) {
      const { turn } = await session.state()
      if (turn === undefined) return
      await session.interrupt({ turnId: turn.turnId, reason: 'the session is being erased' })
      await Promise.race([session.wait(turn.turnId), delay(STOP_MS, undefined, { signal: giveUp })])
    }
  } catch {
    // A damaged session is erased too.
  }
}

async function childrenOf({ journal }: Backend, key: SessionKey): Promise<string[]> {
  const children = new Set<string>()
  try {
    for (let after = 0; ; ) {
      const page = await journal.read(key, after)
      for (const it of page) if (it.type === 'child.opened') children.add(it.session)
      if (page.length === 0) break
      after = page.at(-1)!.seq
    }
  } catch {
    // Children of a damaged session are found when their user is erased.
  }
  return [...children]
}

const recordOf = (
  { tenant, user = '*', session = '*' }: ErasureScope,
  principal: Principal,
  counts: Erasure,
): AuditRecord => ({
  key: { tenant, user, session },
  seq: 0,
  at: Date.now(),
  event: 'data.erased',
  turnId: '',
  callId: '',
  tool: 'erase',
  principal,
  arguments: { ...counts },
  decision: undefined,
  rule: undefined,
  reason: undefined,
  approver: undefined,
  operationId: undefined,
  status: undefined,
})
