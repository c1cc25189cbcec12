// An approval as clients see it.

import { type Event, mayDecide, type Principal, type SessionKey } from '@oxbow/core'
import { defined } from '@oxbow/core/internal'
import { z } from 'zod'
import type { FoundApproval } from './find.ts'
import { publicApprovalId } from './public-id.ts'
import { acceptedRule } from './remember.ts'

const given = z.record(z.string(), z.unknown())

export const approvalView = z.object({
  id: z.string().describe('Opaque.'),
  status: z.enum(['open', 'approved', 'denied', 'expired', 'cancelled']).describe('`cancelled`: its turn was stopped.'),
  mayDecide: z.boolean().describe('Whether you may decide on it.'),
  sessionId: z.string(),
  userId: z.string().describe('The owner of the session.'),
  turnId: z.string(),
  callId: z.string(),
  source: z
    .object({
      rootSessionId: z.string().describe('The session of the root agent.'),
      sessionId: z.string().describe('The session of the call.'),
      agents: z.array(z.string()).describe('From the root agent to the one that asked.'),
    })
    .optional()
    .describe('Present when a sub-agent asked.'),
  askedBy: z.object({ user: z.string(), department: z.string().optional() }),
  tool: z.string(),
  arguments: given.describe('Exactly the arguments that run if the call is approved unchanged.'),
  digest: z.string().describe('SHA-256 of tool and arguments.'),
  reason: z.string(),
  rule: z.string().describe('The rule that requires the approval.'),
  suggestions: z.array(z.string()).describe('Rules that can be accepted with the approval, narrowest first.'),
  scopes: z
    .array(z.enum(['session', 'user', 'project']))
    .optional()
    .describe('The scopes in which they can be accepted. Missing: all scopes.'),
  approver: z.string().optional().describe('The permission required to decide. Missing: the user decides.'),
  requestedAt: z.number().describe('Milliseconds since 1970.'),
  expiresAt: z.number(),
  ageMs: z.number(),
  resolution: z
    .object({
      by: z.string().optional().describe('The user who decided; missing when the approval expired.'),
      at: z.number(),
      reason: z.string().optional(),
      changes: z
        .array(z.object({ argument: z.string(), from: z.unknown().optional(), to: z.unknown().optional() }))
        .describe('The arguments that the approver changed.'),
      remember: acceptedRule.optional(),
    })
    .optional(),
  call: z
    .object({ status: z.string(), text: z.string(), at: z.number() })
    .optional()
    .describe(
      'The outcome of the call. An approved call may still be denied, if its user has lost the right meanwhile.',
    ),
})

export type ApprovalView = z.infer<typeof approvalView>

export function approvalViewOf(
  key: SessionKey,
  { requested, resolved, finished, asker, source }: FoundApproval,
  principal: Principal,
): ApprovalView {
  const { approvalId, turnId, callId, tool, digest, reason, rule, suggestions, scopes, approver, expiresAt, at } =
    requested
  const { department } = asker
  return {
    id: publicApprovalId(key, approvalId),
    status: approvalStatusOf({ requested, resolved, finished }),
    mayDecide: mayDecide(requested, principal, asker),
    sessionId: key.session,
    userId: key.user,
    turnId,
    callId,
    ...(source && { source: { ...source, agents: [...source.agents] } }),
    askedBy: { user: asker.user, ...defined({ department }) },
    tool,
    arguments: requested.arguments,
    digest,
    reason,
    rule,
    suggestions,
    ...(scopes && { scopes }),
    ...defined({ approver }),
    requestedAt: at,
    expiresAt,
    ageMs: Math.max(0, Date.now() - at),
    ...(resolved && { resolution: resolutionOf(requested, resolved) }),
    ...(finished && { call: { status: finished.status, text: textOf(finished), at: finished.at } }),
  }
}

export function approvalStatusOf({
  requested,
  resolved,
  finished,
}: Omit<FoundApproval, 'asker' | 'source'>): ApprovalView['status'] {
  if (resolved !== undefined) return resolved.verdict
  if (finished !== undefined) return 'cancelled'
  return requested.expiresAt <= Date.now() ? 'expired' : 'open'
}

function resolutionOf(
  { arguments: asked }: Event<'approval.requested'>,
  { principal, at, reason, arguments: edited = asked, remember }: Event<'approval.resolved'>,
): NonNullable<ApprovalView['resolution']> {
  const names = [...new Set([...Object.keys(asked), ...Object.keys(edited)])]
  const changes = names
    .filter((it) => JSON.stringify(asked[it]) !== JSON.stringify(edited[it]))
    .map((argument) => ({ argument, from: asked[argument], to: edited[argument] }))
  return {
    ...(principal && { by: principal.user }),
    at,
    ...defined({ reason }),
    changes,
    ...(remember && { remember }),
  }
}

const textOf = ({ content }: Event<'call.finished'>): string =>
  content.map((it) => (it.type === 'text' ? it.text : `[${it.name ?? it.mediaType}]`)).join('\n')
