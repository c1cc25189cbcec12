// Deliveries between the sessions of a tree: results go up, stops go down. Each delivery is repeated, by whichever
// process loads the session next, until the journals show that it arrived.

import type { EngineInternals } from '../engine-internals.ts'
import type { Event } from '../events/types.ts'
import type { SessionLog } from '../journal/session-log.ts'
import type { SessionKey } from '../ports.ts'
import { mustStop } from '../state/deadlines.ts'
import type { Slots } from '../state/slots.ts'
import {
  type ChildRecord,
  findTurn,
  nothingSpent,
  type SessionState,
  type TurnState,
  type Undelivered,
} from '../state/state.ts'
import { turnEvents } from '../state/turn-events.ts'
import { offload } from '../tools/artifacts.ts'
import { endOf, MAX_HAND_OFF } from './hand-off.ts'
import { answerLate } from './rise.ts'

export async function settleDebts(engine: EngineInternals, log: SessionLog): Promise<void> {
  await answerLate(engine, log)
  for (const it of log.state.children) if (mustStop(it)) await stopChild(engine, log, it)
  // A child ends after all agents below it, so that its end is complete and nothing follows it.
  for (const it of log.state.undelivered)
    if (!log.state.children.some((child) => child.turnId === it.turnId && child.closed === undefined))
      await deliver(engine, log, it)
}

async function deliver(engine: EngineInternals, log: SessionLog, { turnId, delegation }: Undelivered): Promise<void> {
  const parent = delegation.ancestors.at(-1)!
  const events = await eventsOfChild(log, turnId)
  const { session } = log.key
  await engine.withCurrentLog({ ...log.key, session: parent.session }, async (above) => {
    const child = above.state.children.find((it) => it.childTurnId === turnId)
    const end = child && endOf(child.agent, session, turnId, events)
    const text = end && (await shownAbove(engine, above.key, turnId, end.text))
    await above.append((draft) => {
      const record = draft.state.children.find((it) => it.childTurnId === turnId)
      const left = log.state.undelivered.find((it) => it.turnId === turnId)
      if (record === undefined || record.closed !== undefined || left === undefined) return
      if (end === undefined || text === undefined) return
      const slots = handedUp(log.state)
      const told = record.background && record.stopped === undefined
      draft.add({
        type: 'child.closed',
        turnId: record.turnId,
        callId: record.callId,
        session,
        agent: record.agent,
        childTurnId: turnId,
        status: end.status,
        text,
        spent: left.spent,
        ...(slots.length > 0 && { slots }),
        ...(told && { input: [{ type: 'text', text }] }),
      })
    })
    engine.faultPoint?.('child.closed')
    await log.append((draft) => {
      if (draft.state.undelivered.some((it) => it.turnId === turnId)) draft.add({ type: 'result.delivered', turnId })
    })
    await settleDebts(engine, above)
    engine.ensureWorker(above)
  })
}

/**
 * A long hand-off is kept beside the parent's journal; the text names the artifact. Written again, it is the same one.
 */
async function shownAbove(
  engine: EngineInternals,
  parent: SessionKey,
  childTurnId: string,
  text: string,
): Promise<string> {
  const id = `${childTurnId}.hand-off`
  const { content } = await offload(engine.files, parent, id, [{ type: 'text', text }], MAX_HAND_OFF)
  return content.map((it) => (it.type === 'text' ? it.text : '')).join('\n')
}

/** Slots of this session and of all below it: readers of a hand-off may need to know where it comes from. */
function handedUp({ slots, handsUp, below }: SessionState): Slots[] {
  const own = Object.fromEntries(handsUp.map((name) => [name, slots[name]]))
  return [...(handsUp.length > 0 ? [own] : []), ...Object.values(below).flat()]
}

export async function stopChild(engine: EngineInternals, log: SessionLog, record: ChildRecord): Promise<void> {
  const { session, childTurnId } = record
  const known = await engine.withCurrentLog({ ...log.key, session }, async (child) => {
    const found = findTurn(child.state, childTurnId)
    if (found === undefined || found.ended) return found !== undefined
    await child.append((draft) => {
      const { turn, queue } = draft.state
      const open = turn?.turnId === childTurnId ? turn : queue.find((it) => it.started.turnId === childTurnId)
      if (open === undefined || open.interrupt !== undefined) return
      const reason = `${log.state.agent}, which gave the task, was stopped`
      draft.add({ type: 'interrupt.requested', turnId: childTurnId, principal: userOf(log.key), reason })
    })
    engine.ensureWorker(child)
    return true
  })
  if (!known) await closeUnborn(log, record)
}

/**
 * The task was never given: the process died, or the turn was stopped, between the two. Who gives it late finds it
 * closed.
 */
const closeUnborn = (log: SessionLog, { childTurnId }: ChildRecord): Promise<void> =>
  log.append((draft) => {
    const record = draft.state.children.find((it) => it.childTurnId === childTurnId)
    if (record === undefined || record.closed !== undefined) return
    const { turnId, callId, session, agent } = record
    const text = `The agent ${agent} (${session}) was stopped before it began.`
    const facts = { turnId, callId, session, agent, childTurnId, text }
    draft.add({ type: 'child.closed', ...facts, status: 'cancelled', spent: nothingSpent })
  })

/** Answers approvals above that were requested just when the original was decided. */
export async function settleAbove(engine: EngineInternals, key: SessionKey, turn: TurnState): Promise<void> {
  for (const { session } of (turn.delegation?.ancestors ?? []).toReversed())
    await engine.withCurrentLog({ ...key, session }, async (log) => {
      await answerLate(engine, log)
    })
}

/** Whether the parent still wants what this turn works for. */
export async function isWanted(engine: EngineInternals, key: SessionKey, turn: TurnState): Promise<boolean> {
  const parent = turn.delegation?.ancestors.at(-1)
  if (parent === undefined) return true
  return engine.withCurrentLog({ ...key, session: parent.session }, async (log) => {
    const record = log.state.children.find((it) => it.childTurnId === turn.turnId)
    return record !== undefined && record.stopped === undefined && record.closed === undefined
  })
}

/** The events of a child's turn. The child's own children may end after it. */
export const eventsOfChild = (log: SessionLog, turnId: string): Promise<Event[]> =>
  Array.fromAsync(turnEvents((after) => log.read(after), log.state, turnId, log.state.seq))

export const userOf = ({ tenant, user }: SessionKey) => ({ tenant, user })
