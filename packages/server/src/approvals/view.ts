// An approval as a client sees it.
import { type Event, mayDecide, type Principal, type SessionKey } from '@oxbow/core'
import { z } from 'zod'
import type { FoundApproval } from './find.ts'
import { publicApprovalId } from './public-id.ts'
import { acceptedRule } from './remember.ts'

const given = z.record(z.string(), z.unknown())

export const approvalView = z.object({
  id: z.string().describe('Opaque.'),
  status: z.enum(['open', 'approved', 'denied', 'expired', 'cancelled']).describe('`cancelled`: its turn was stopped.'),
  mayDecide: z.boolean().describe('Whether you may.'),
  sessionId: z.string(),
  userId: z.string().describe('Whose session it is.'),
  turnId: z.string(),
  callId: z.string(),
  source: z
    .object({
      rootSessionId: z.string().describe('The session at the top of the agents.'),
      sessionId: z.string().describe('The session whose call it is.'),
      agents: z.array(z.string()).describe('From the top to the one that asks.'),
    })
    .optional()
    .describe('When an agent asks that works for another.'),
  askedBy: z.object({ user: z.string(), department: z.string().optional() }),
  tool: z.string(),
  arguments: given.describe('Exactly what runs if it is approved as it is.'),
  digest: z.string().describe('SHA-256 of tool and arguments.'),
  reason: z.string(),
  rule: z.string().describe('What asked.'),
  suggestions: z.array(z.string()).describe('Rules that can be accepted with it, the narrowest first.'),
  scopes: z
    .array(z.enum(['session', 'user', 'project']))
    .optional()
    .describe('For what they can be accepted. Absent: for all.'),
  approver: z.string().optional().describe('The permission that is needed to decide. Without it the user decides.'),
  requestedAt: z.number().describe('Milliseconds since 1970.'),
  expiresAt: z.number(),
  ageMs: z.number(),
  resolution: z
    .object({
      by: z.string().optional().describe('Nobody when it expired.'),
      at: z.number(),
      reason: z.string().optional(),
      changes: z
        .array(z.object({ argument: z.string(), from: z.unknown().optional(), to: z.unknown().optional() }))
        .describe('What whoever approved has changed.'),
      remember: acceptedRule.optional(),
    })
    .optional(),
  call: z
    .object({ status: z.string(), text: z.string(), at: z.number() })
    .optional()
    .describe(
      'What became of the call. An approved call may still be refused, if its user has lost the right meanwhile.',
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
    askedBy: { user: asker.user, ...(department !== undefined && { department }) },
    tool,
    arguments: requested.arguments,
    digest,
    reason,
    rule,
    suggestions,
    ...(scopes && { scopes }),
    ...(approver !== undefined && { approver }),
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
    ...(reason !== undefined && { reason }),
    changes,
    ...(remember && { remember }),
  }
}

const textOf = ({ content }: Event<'call.finished'>): string =>
  content.map((it) => (it.type === 'text' ? it.text : `[${it.name ?? it.mediaType}]`)).join('\n')
