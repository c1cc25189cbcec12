// A child's approval on its way up: each call above that waits for the child asks for it, and one decision answers all.

import type { EngineInternals } from '../engine-internals.ts'
import type { Delegation, Event } from '../events/types.ts'
import type { SessionLog } from '../journal/session-log.ts'
import type { TurnState } from '../journal/state.ts'
import type { SessionKey } from '../ports.ts'
import type { ApprovalRequest } from '../tools/needs-approval.ts'

type Origin = NonNullable<Event<'approval.requested'>['origin']>
export type Answer = Pick<Event<'approval.resolved'>, 'verdict' | 'principal' | 'reason' | 'arguments'>

/** The first approval that a child's turn waits for, as its parent asks for it. */
export function questionOf(agent: string, session: string, turn: TurnState): ApprovalRequest | undefined {
  const open = turn.calls.find((it) => it.finished === undefined && it.approval && it.approval.resolved === undefined)
  const requested = open?.approval?.requested
  if (requested === undefined) return undefined
  const { tool, suggestions, scopes, approver, expiresAt, reason } = requested
  const own = {
    session,
    approvalId: requested.approvalId,
    agents: [...(turn.delegation?.ancestors ?? []).map((it) => it.agent), agent],
  }
  return {
    tool,
    arguments: requested.arguments,
    // Only the first on its way up adds who asks.
    reason: requested.origin === undefined ? `The agent ${agent} asks: ${reason}` : reason,
    suggestions,
    ...(scopes && { scopes }),
    origin: requested.origin ?? own,
    expiresAt,
    ...(approver !== undefined && { approver }),
  }
}

/** Answers what calls above have asked on behalf of `origin`, the nearest first: those above may ask again at once. */
export async function answerAbove(
  engine: EngineInternals,
  key: SessionKey,
  delegation: Delegation | undefined,
  origin: Pick<Origin, 'session' | 'approvalId'>,
  answer: Answer,
): Promise<void> {
  for (const { session } of (delegation?.ancestors ?? []).toReversed())
    await engine.using({ ...key, session }, async (log) => {
      await log.catchUp()
      await log.append((draft) => {
        for (const { approval, finished } of draft.state.turn?.calls ?? []) {
          if (approval === undefined || approval.resolved !== undefined || finished !== undefined) continue
          const { turnId, approvalId, origin: asked } = approval.requested
          if (asked?.session !== origin.session || asked.approvalId !== origin.approvalId) continue
          draft.add({ type: 'approval.resolved', turnId, approvalId, ...answer })
        }
      })
      engine.ensureWorker(log)
    })
}

/**
 * A call may ask on behalf of a child just after that was decided, and a process may die between the two: what is open here
 * and answered there is answered here, too.
 */
export async function answerLate(engine: EngineInternals, log: SessionLog): Promise<void> {
  for (const { approval, finished } of log.state.turn?.calls ?? []) {
    const asked = approval?.requested.origin
    if (asked === undefined || approval?.resolved !== undefined || finished !== undefined) continue
    const answer = await answerIn(engine, { ...log.key, session: asked.session }, asked.approvalId)
    if (answer === undefined) continue
    const { turnId, approvalId } = approval!.requested
    await log.append((draft) => {
      const call = draft.state.turn?.calls.find((it) => it.approval?.requested.approvalId === approvalId)
      if (call === undefined || call.approval?.resolved !== undefined || call.finished !== undefined) return
      draft.add({ type: 'approval.resolved', turnId, approvalId, ...answer })
    })
    engine.ensureWorker(log)
  }
}

/** Undefined while it is open. What has ended without an answer gets none. */
const answerIn = (engine: EngineInternals, key: SessionKey, approvalId: string): Promise<Answer | undefined> =>
  engine.using(key, async (log) => {
    await log.catchUp()
    const call = log.state.turn?.calls.find((it) => it.approval?.requested.approvalId === approvalId)
    if (call !== undefined && call.finished === undefined && call.approval?.resolved === undefined) return undefined
    let found: Answer = { verdict: 'expired' }
    for (let seq = 0; seq < log.state.seq; ) {
      const page = await log.read(seq)
      if (page.length === 0) break
      for (const it of page)
        if (it.type === 'approval.resolved' && it.approvalId === approvalId) {
          const { verdict, principal, reason, arguments: edited } = it
          found = {
            verdict,
            ...(principal && { principal }),
            ...(reason !== undefined && { reason }),
            ...(edited && { arguments: edited }),
          }
        }
      seq = page.at(-1)!.seq
    }
    return found
  })
