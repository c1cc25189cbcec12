// Propagates a child's approval: each waiting call above requests it too, and one decision answers all.

import { defined } from '../checks/defined.ts'
import type { EngineInternals } from '../engine-internals.ts'
import type { Delegation, Event } from '../events/types.ts'
import type { SessionLog } from '../journal/session-log.ts'
import type { SessionKey } from '../ports.ts'
import { awaitsApproval, callOfApproval, openApprovals, type TurnState } from '../state/state.ts'
import type { ApprovalRequest } from '../tools/needs-approval.ts'

type Origin = NonNullable<Event<'approval.requested'>['origin']>
export type ApprovalAnswer = Pick<Event<'approval.resolved'>, 'verdict' | 'principal' | 'reason' | 'arguments'>

/** The first approval that a child's turn waits for, as its parent requests it. */
export function questionOf(agent: string, session: string, turn: TurnState): ApprovalRequest | undefined {
  const [requested] = openApprovals(turn)
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
    // Only the first level adds the agent's name.
    reason: requested.origin === undefined ? `The agent ${agent} asks: ${reason}` : reason,
    suggestions,
    ...(scopes && { scopes }),
    origin: requested.origin ?? own,
    expiresAt,
    ...defined({ approver }),
  }
}

/** Answers what calls above have asked on behalf of `origin`, the nearest first: those above may ask again at once. */
export async function answerAbove(
  engine: EngineInternals,
  key: SessionKey,
  delegation: Delegation | undefined,
  origin: Pick<Origin, 'session' | 'approvalId'>,
  answer: ApprovalAnswer,
): Promise<void> {
  for (const { session } of (delegation?.ancestors ?? []).toReversed())
    await engine.withCurrentLog({ ...key, session }, async (log) => {
      await log.append((draft) => {
        for (const { turnId, approvalId, origin: asked } of openApprovals(draft.state.turn)) {
          if (asked?.session !== origin.session || asked.approvalId !== origin.approvalId) continue
          draft.add({ type: 'approval.resolved', turnId, approvalId, ...answer })
        }
      })
      engine.ensureWorker(log)
    })
}

/**
 * A call may ask on behalf of a child just after that was decided, and a process may die between the two: what is open
 * here and decided there is decided here too.
 */
export async function answerLate(engine: EngineInternals, log: SessionLog): Promise<void> {
  for (const { turnId, approvalId, origin: asked } of openApprovals(log.state.turn)) {
    if (asked === undefined) continue
    const answer = await answerIn(engine, { ...log.key, session: asked.session }, asked.approvalId)
    if (answer === undefined) continue
    await log.append((draft) => {
      const call = callOfApproval(draft.state.turn, approvalId)
      if (call === undefined || !awaitsApproval(call)) return
      draft.add({ type: 'approval.resolved', turnId, approvalId, ...answer })
    })
    engine.ensureWorker(log)
  }
}

/** Undefined while it is open. What has ended without an answer gets none. */
const answerIn = (engine: EngineInternals, key: SessionKey, approvalId: string): Promise<ApprovalAnswer | undefined> =>
  engine.withCurrentLog(key, async (log) => {
    const call = callOfApproval(log.state.turn, approvalId)
    if (call !== undefined && awaitsApproval(call)) return undefined
    let found: ApprovalAnswer = { verdict: 'expired' }
    for (let seq = 0; seq < log.state.seq; ) {
      const page = await log.read(seq)
      if (page.length === 0) break
      for (const it of page)
        if (it.type === 'approval.resolved' && it.approvalId === approvalId) {
          const { verdict, principal, reason, arguments: edited } = it
          found = {
            verdict,
            ...(principal && { principal }),
            ...defined({ reason }),
            ...(edited && { arguments: edited }),
          }
        }
      seq = page.at(-1)!.seq
    }
    return found
  })
