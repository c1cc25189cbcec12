// Pending approvals, for use without a terminal prompt.
import type { SessionState } from '@oxbow/core'
import { emptyState, evolve } from '@oxbow/core/internal'
import { publicApprovalId } from '@oxbow/server'
import { type RuntimeOptions, withBackend } from '../runtime.ts'
import { waitingIn } from '../terminal/approving.ts'
import { approvalCard, coloured, plain, printable } from '../terminal/transcript.ts'
import { storedEvents } from './sessions.ts'

interface ApprovalsCommand extends RuntimeOptions {
  readonly user: string
  readonly json?: boolean
}

/** Lists the pending approvals in a user's sessions, most recently changed first. */
export function listApprovals(options: ApprovalsCommand): Promise<void> {
  return withBackend(options, async (backend) => {
    const style = process.stdout.isTTY && process.env.NO_COLOR === undefined ? coloured : plain
    let found = 0
    for (const { key } of await backend.journal.list({ user: options.user, status: 'open', limit: MOST_SESSIONS })) {
      let state: SessionState = emptyState
      for await (const event of storedEvents(backend, key)) state = evolve(state, event)
      for (const it of waitingIn(state)) {
        found += 1
        const id = publicApprovalId(key, it.approvalId)
        const { tool, arguments: given, reason, rule, approver, expiresAt } = it
        if (options.json)
          console.log(
            JSON.stringify({ id, session: key.session, tool, arguments: given, reason, rule, approver, expiresAt }),
          )
        else {
          console.log(approvalCard(it, style, id))
          console.log(
            style.dim(`  session ${printable(key.session)}${approver === undefined ? '' : `; needs ${approver}`}`),
          )
        }
      }
    }
    if (found === 0 && !options.json) console.log('No approvals are pending.')
  })
}

const MOST_SESSIONS = 1_000
