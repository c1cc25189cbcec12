// What a person said when they let a call run: the model and the caller must not take it for the call that was asked
// for.
import { defined } from '../checks/defined.ts'
import type { InputBlock, ResultBlock } from '../events/types.ts'
import { withoutSecrets } from './audit.ts'
import type { CallState } from './state.ts'

export type Approved = NonNullable<ResultBlock['approval']>

/** Undefined when it was not approved, or when there is nothing to add to the approval. */
export function approvedWith({ approval }: Pick<CallState, 'approval'>): Approved | undefined {
  // An approval requested by another agent is reported there.
  if (approval?.resolved?.verdict !== 'approved' || approval.requested.origin !== undefined) return undefined
  const { reason, arguments: given, principal } = approval.resolved
  if (reason === undefined && given === undefined) return undefined
  return {
    by: principal?.user ?? 'a person',
    ...defined({ reason, arguments: given }),
  }
}

const MAX_ARGUMENTS = 4_000

/** The same for the model, before the result of the call. Values that the tool calls secret stay out. */
export function approvalNote({ by, reason, arguments: given }: Approved, secrets: readonly string[]): InputBlock {
  const why = reason === undefined ? '' : ` Reason: ${reason}`
  if (given === undefined) return { type: 'text', text: `[Approved by ${by}.${why}]` }
  const json = JSON.stringify(withoutSecrets(given, secrets))
  const ran = json.length > MAX_ARGUMENTS ? `${json.slice(0, MAX_ARGUMENTS)} …` : json
  return { type: 'text', text: `[Approved by ${by}, with other arguments than yours: ${ran}.${why}]` }
}
