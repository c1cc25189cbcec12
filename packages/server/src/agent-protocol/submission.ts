// The body of POST /tasks, and what of it is kept with the turn.
import { z } from 'zod'

const denyRule = z
  .looseObject({
    tool_name: z.string().min(1).max(200),
    behavior: z.string().optional(),
    source: z.string().optional(),
  })
  .refine((it) => it.behavior === undefined || it.behavior.toUpperCase() === 'DENY', {
    path: ['behavior'],
    message: 'must be DENY: a caller can only take away',
  })

const attributes = z.record(z.string(), z.unknown())

const context = z
  .looseObject({
    user_id: z.string().max(200).nullish(),
    parent_session_id: z.string().max(200).nullish().describe('For tracing.'),
    stream: z.boolean().nullish().describe('Whether the caller means to read the events.'),
    detail: z.string().nullish().describe('`status`, `full` or `verbose`; anything else counts as `status`.'),
    deny_rules: z.array(denyRule).max(1_000).nullish().describe('Rules of the parent, enforced here as well.'),
    attributes: attributes.nullish().describe('For routing, tools and middleware; never in the prompt.'),
  })
  .nullish()

export const submission = (maxLength: number) =>
  z.object({
    task_id: z
      .string('is required')
      .max(1_000)
      .refine((it) => it.trim() !== '', 'is required'),
    agent_id: z.string().max(200).nullish(),
    input: z
      .string()
      .max(maxLength, `must not be longer than ${maxLength} characters`)
      .refine((it) => it.trim() !== '', 'must not be blank'),
    context,
  })
export type Submission = z.output<ReturnType<typeof submission>>

export const submittedText = (object: Readonly<Record<string, unknown>>, key: string): string | undefined => {
  const value = object[key]
  return typeof value === 'string' && value.trim() !== '' ? value : undefined
}

export function attributesIn(context: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const parsed = attributes.safeParse(context.attributes)
  return parsed.success ? parsed.data : {}
}

export type Detail = 'status' | 'full' | 'verbose'
export const detailIn = (context: Readonly<Record<string, unknown>>): Detail => {
  const given = submittedText(context, 'detail')?.trim().toLowerCase()
  return given === 'full' || given === 'verbose' ? given : 'status'
}
