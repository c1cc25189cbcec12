// A child's approval on its way up: each call above that waits for the child asks for it, and one decision answers all.
import type { ApprovalRequest } from '../asking.ts'
import type { EngineInside } from '../engine-inside.ts'
import type { Delegation, Event } from '../events/types.ts'
import type { SessionKey } from '../ports.ts'
import type { TurnState } from '../state.ts'

type Origin = NonNullable<Event<'approval.requested'>['origin']>
export type Answer = Pick<Event<'approval.resolved'>, 'verdict' | 'principal' | 'reason' | 'arguments'>

/** The first approval that a child's turn waits for, as its parent asks for it. */
export function questionOf(agent: string, session: string, turn: TurnState): ApprovalRequest | undefined {
  const open = turn.calls.find((it) => it.finished === undefined && it.approval && it.approval.resolved === undefined)
  const requested = open?.approval?.requested
  if (requested === undefined) return undefined
  const { tool, suggestions, approver, expiresAt, reason } = requested
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
    origin: requested.origin ?? own,
    expiresAt,
    ...(approver !== undefined && { approver }),
  }
}

/** Answers what calls above have asked on behalf of `origin`, the nearest first: those above may ask again at once. */
export async function answerAbove(
  engine: EngineInside,
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
      engine.attend(log)
    })
}
