// Approvals in AG-UI's terms: an interrupt that a run ends with, and the entry of the next run that answers it.
import type { Interrupt } from '@ag-ui/core'
import type { ApprovalDecision, Event, SessionKey } from '@oxbow/core'
import { z } from 'zod'
import { publicApprovalId } from '../approvals/public-id.ts'
import { rememberedRule } from '../approvals/remember.ts'

/** `key`: of the session that asks. `schema`: of the tool's arguments, for whoever builds a form. */
export function interruptOf(
  key: SessionKey,
  {
    approvalId,
    tool,
    arguments: given,
    reason,
    rule,
    suggestions,
    scopes = ['session', 'user', 'project'],
    approver,
    digest,
    expiresAt,
  }: Event<'approval.requested'>,
  toolCallId: string,
  schema: object | undefined,
): Interrupt {
  return {
    id: approvalId,
    reason: 'tool_call',
    message: `Approve ${tool}? ${reason}`,
    toolCallId,
    responseSchema: responseSchema(suggestions, scopes, schema),
    expiresAt: new Date(expiresAt).toISOString(),
    metadata: {
      // For /api/approvals/{id}; the interrupt's own id is known inside its thread only.
      id: publicApprovalId(key, approvalId),
      tool,
      arguments: given,
      rule,
      suggestions,
      digest,
      ...(approver !== undefined && { approver }),
    },
  }
}

const responseSchema = (
  suggestions: readonly string[],
  scopes: readonly string[],
  schema: object | undefined,
): Record<string, unknown> => ({
  type: 'object',
  properties: {
    approved: { type: 'boolean' },
    reason: { type: 'string', description: 'For the model and for the record.' },
    editedArgs: {
      ...(schema ?? { type: 'object' }),
      description: 'Full replacement of the arguments. Not merged. They are judged again before they run.',
    },
    ...(suggestions.length > 0 && {
      remember: {
        type: 'object',
        description: 'Let calls like this one run from now on.',
        properties: {
          rule: { type: 'string', examples: suggestions },
          scope: { type: 'string', enum: scopes },
        },
        required: ['rule', 'scope'],
      },
    }),
  },
  required: ['approved'],
})

const payload = z.strictObject({
  approved: z.boolean(),
  reason: z.string().max(2_000).optional(),
  editedArgs: z.record(z.string(), z.unknown()).optional(),
  remember: rememberedRule.optional(),
})

/** What a payload decides; a text when it says nothing that can be understood. */
export function decisionOf(given: unknown): ApprovalDecision | string {
  const parsed = payload.safeParse(given)
  if (!parsed.success) {
    const issues = parsed.error.issues.map((it) => `${['payload', ...it.path].join('.')}: ${it.message}`)
    return issues.join('; ')
  }
  const { approved, reason, editedArgs, remember } = parsed.data
  return {
    verdict: approved ? 'approved' : 'denied',
    ...(reason !== undefined && { reason }),
    ...(editedArgs !== undefined && { arguments: editedArgs }),
    ...(remember !== undefined && { remember: remember as NonNullable<ApprovalDecision['remember']> }),
  }
}
