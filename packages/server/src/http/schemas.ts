// Schemas that several routes share.

import { isObject, nearest } from '@oxbow/core/internal'
import { z } from 'zod'

const ID_RULE = 'must have 1 to 64 of the characters A-Z a-z 0-9 _ . - and not only dots'

export const id = z
  .string()
  .regex(/^(?!\.+$)[A-Za-z0-9_.-]{1,64}$/, ID_RULE)
  .describe('1 to 64 of the characters A-Z a-z 0-9 _ . - and not only dots.')

/** A blank id counts as missing. */
export const optionalId = z.union([z.string().regex(/^\s*$/), id], { error: ID_RULE }).nullish()

export const given = (value: string | null | undefined): string | undefined =>
  value === null || value === undefined || value.trim() === '' ? undefined : value

export const messageText = (maxLength: number) =>
  z
    .string('must be a string')
    .max(maxLength, `must not be longer than ${maxLength} characters`)
    .refine((text) => text.trim() !== '', 'must not be blank')

/**
 * An object with these fields and no others. An unknown field is rejected; the message lists the allowed ones.
 *
 * @example only({ limit: wholeNumber(1, 200).default(50) })
 */
export function only<S extends z.core.$ZodShape>(shape: S): z.ZodObject<S, z.core.$strict> {
  const known = Object.keys(shape)
  return z.strictObject(shape, {
    error(issue) {
      if (issue.code !== 'unrecognized_keys') return undefined
      const unknown = issue.keys.slice(0, 5).map((it) => {
        const meant = nearest(it, known)
        return `${JSON.stringify(it.slice(0, 60))}${meant === undefined ? '' : ` (did you mean ${JSON.stringify(meant)}?)`}`
      })
      const fields = unknown.length === 1 ? 'field' : 'fields'
      return `Unknown ${fields} ${unknown.join(', ')}. Allowed: ${known.length === 0 ? 'none' : known.join(', ')}`
    },
  })
}

/** Arguments of a call. Not copied: the object itself knows how its numbers were written. */
export const editedArguments = z.unknown().refine(isObject, 'must be an object').meta({ type: 'object' }) as z.ZodType<
  Record<string, unknown>
>

/** A whole number in a query, where every value is a string. */
export function wholeNumber(min: number, max: number = Number.MAX_SAFE_INTEGER) {
  const rule = `must be a whole number${max === Number.MAX_SAFE_INTEGER ? `, ${min} or more` : ` from ${min} to ${max}`}`
  return z.coerce.number(rule).int(rule).min(min, rule).max(max, rule)
}

/** `next` of a paged list. */
export const pageBefore = wholeNumber(0).optional().describe('`next` of the previous page.')

export const sequenceNumber = wholeNumber(0).describe("A sequence number of the session's journal.")

export const errorAnswer = z.object({
  error: z.object({
    code: z.string(),
    message: z.string().describe('Safe to show to end users.'),
    reference: z.string().optional().describe('Finds the full error in the log.'),
  }),
})

/** Present when a turn has tool calls with an unknown outcome. */
export const unknownOutcomes = z
  .array(z.object({ callId: z.string(), tool: z.string() }))
  .optional()
  .describe('Calls that may or may not have taken effect. Check before you repeat them.')

export const sessionPath = z.object({ sessionId: id })
/** With identity enabled, both come from the credentials and may be omitted. */
export const whose = { userId: optionalId, tenant: optionalId }
export const userQuery = only(whose)
