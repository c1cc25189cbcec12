// GET /admin/api/audit: every tool call with its principal, rule, approver and outcome.

import type { AuditQuery, AuditRecord, Engine } from '@oxbow/core'
import { defined } from '@oxbow/core/internal'
import { z } from 'zod'
import { acceptedRule } from '../approvals/remember.ts'
import { type Route, route } from '../http/route.ts'
import { only, optionalId, pageBefore, wholeNumber } from '../http/schemas.ts'
import { callerOf } from '../principal.ts'

const status = z.enum(['success', 'error', 'denied', 'timed_out', 'cancelled', 'unknown'])
const time = z
  .union([z.coerce.number().int(), z.iso.datetime({ offset: true }).transform((it) => Date.parse(it))], {
    error: 'must be milliseconds since 1970, or a time such as 2026-01-31T09:00:00Z',
  })
  .optional()

const record = z.object({
  at: z.number().describe('Milliseconds since 1970.'),
  event: z
    .enum(['call.decided', 'approval.resolved', 'external.resolved', 'call.finished', 'data.erased'])
    .describe('`data.erased`: an erasure. `arguments` has its scope and counts; `*` stands for all users or sessions.'),
  tenant: z.string(),
  userId: z.string().describe('The owner of the session.'),
  sessionId: z.string(),
  seq: z.number().describe('The sequence number of the event in the session.'),
  turnId: z.string(),
  callId: z.string(),
  tool: z.string(),
  principal: z.looseObject({ user: z.string() }).describe('The principal of the turn, as of its start.'),
  arguments: z
    .record(z.string(), z.unknown())
    .describe(
      'Without fields that the tool marks as secret. `unreadable`: the model’s arguments were not a JSON object.',
    ),
  decision: z.string().optional(),
  rule: z.string().optional().describe('The rule that decided.'),
  reason: z.string().optional(),
  approver: z.string().optional().describe('The user who decided on the approval.'),
  broughtBy: z.string().optional().describe('The user who sent the result of an external call.'),
  remember: acceptedRule.optional().describe('The rule accepted with the approval.'),
  operationId: z.string().optional(),
  status: status.optional().describe('The outcome of the call.'),
  erased: z.literal(true).optional().describe('The session was erased, and the data of the call with it.'),
})

export function auditRoute(engine: Engine): Route {
  return route({
    method: 'get',
    path: '/admin/api/audit',
    id: 'readAudit',
    access: 'admin',
    summary: 'The audit log of all tool calls, oldest first: paged as JSON, or complete as JSON lines.',
    query: only({
      tenant: optionalId.describe('Default: your own.'),
      user: optionalId,
      session: optionalId,
      tool: z.string().min(1).max(128).optional(),
      status: status.optional().describe('Only ended calls with this outcome.'),
      from: time.describe('Inclusive: milliseconds since 1970, or ISO 8601.'),
      to: time.describe('Exclusive.'),
      after: pageBefore,
      limit: wholeNumber(1, 1_000).default(100),
      format: z.enum(['json', 'jsonl']).default('json').describe('`jsonl`: all records, one per line.'),
    }),
    answers: {
      200: {
        description: 'One page, or all records with `format=jsonl`.',
        schema: z.object({
          records: z.array(record),
          next: z.number().optional().describe('`after` of the next page, if there may be one.'),
        }),
      },
    },
    async handle({ query }, c) {
      const { format, limit, tenant, user, session, ...rest } = query
      const { owner } = callerOf(c, { tenant })
      const filter = present({ ...rest, tenant: owner.tenant, user: user || undefined, session: session || undefined })
      if (format === 'jsonl')
        return c.body(lines(engine, filter), 200, {
          'content-type': 'application/jsonl; charset=utf-8',
          'content-disposition': 'attachment; filename="audit.jsonl"',
        })
      const { records, cursor } = await engine.backend.journal.audit({ ...filter, limit })
      return c.json({ records: records.map(shown), ...(records.length === limit && { next: cursor }) })
    },
  })
}

const PAGE = 500

/** Reads page by page, as fast as the reader consumes them. */
function lines(engine: Engine, filter: AuditQuery): ReadableStream<Uint8Array> {
  let { after } = filter
  return new ReadableStream(
    {
      async pull(controller) {
        const query = { ...filter, ...defined({ after }), limit: PAGE }
        const { records, cursor } = await engine.backend.journal.audit(query)
        after = cursor
        if (records.length > 0)
          controller.enqueue(Buffer.from(records.map((it) => `${JSON.stringify(shown(it))}\n`).join('')))
        if (records.length < PAGE) controller.close()
      },
    },
    { highWaterMark: 0 },
  )
}

function shown({ key, ...rest }: AuditRecord): z.infer<typeof record> {
  const { at, event, ...more } = rest
  return { at, event, tenant: key.tenant, userId: key.user, sessionId: key.session, ...more }
}

const present = <T extends object>(query: T) =>
  Object.fromEntries(Object.entries(query).filter(([, it]) => it !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>
  }
