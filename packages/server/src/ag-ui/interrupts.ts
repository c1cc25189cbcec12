// Approvals as AG-UI interrupts: a run ends with an interrupt, and the next run answers it.
import type { Interrupt } from '@ag-ui/core'
import type { ApprovalDecision, Event, SessionKey } from '@oxbow/core'
import { defined } from '@oxbow/core/internal'
import { z } from 'zod'
import { publicApprovalId } from '../approvals/public-id.ts'
import { rememberedRule } from '../approvals/remember.ts'
import { editedArguments } from '../http/schemas.ts'

/** `key`: the session of the call. `schema`: the schema of the tool's arguments, for forms. */
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
      // For /api/approvals/{id}; the interrupt's own id is valid inside its thread only.
      id: publicApprovalId(key, approvalId),
      tool,
      arguments: given,
      rule,
      suggestions,
      digest,
      ...defined({ approver }),
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
      description: 'Replaces all arguments. They are checked against the rules again before the call runs.',
    },
    ...(suggestions.length > 0 && {
      remember: {
        type: 'object',
        description: 'A rule that lets similar calls run from now on.',
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
  editedArgs: editedArguments.optional(),
  remember: rememberedRule.optional(),
})

/** The decision in a payload, or a message that says why the payload is invalid. */
export function decisionOf(given: unknown): ApprovalDecision | string {
  const parsed = payload.safeParse(given)
  if (!parsed.success) {
    const issues = parsed.error.issues.map((it) => `${['payload', ...it.path].join('.')}: ${it.message}`)
    return issues.join('; ')
  }
  const { approved, reason, editedArgs, remember } = parsed.data
  return {
    verdict: approved ? 'approved' : 'denied',
    ...defined({ reason, arguments: editedArgs }),
    ...(remember !== undefined && { remember: remember as NonNullable<ApprovalDecision['remember']> }),
  }
}
