// Shapes that several routes share.
import { z } from 'zod'

const ID_RULE = 'use 1 to 64 of the characters A-Z a-z 0-9 _ . - and not only dots'

export const id = z
  .string()
  .regex(/^(?!\.+$)[A-Za-z0-9_.-]{1,64}$/, ID_RULE)
  .describe('1 to 64 of the characters A-Z a-z 0-9 _ . - and not only dots.')

/** A blank id counts as not given. */
export const optionalId = z.union([z.string().regex(/^\s*$/), id], { error: ID_RULE }).nullish()

export const given = (value: string | null | undefined): string | undefined =>
  value === null || value === undefined || value.trim() === '' ? undefined : value

export const messageText = (maxLength: number) =>
  z
    .string('must be a string')
    .max(maxLength, `must not be longer than ${maxLength} characters`)
    .refine((text) => text.trim() !== '', 'must not be blank')

export const sequenceNumber = z.coerce
  .number('must be a whole number, 0 or more')
  .int('must be a whole number, 0 or more')
  .min(0, 'must be a whole number, 0 or more')
  .describe("A sequence number of the session's journal.")

export const errorAnswer = z.object({
  error: z.object({
    code: z.string(),
    message: z.string().describe('Safe to show.'),
    reference: z.string().optional().describe('Finds the full error in the log.'),
  }),
})

export const sessionPath = z.object({ sessionId: id })
/** With identity on both are known from the credentials, and may be left out. */
export const whose = { userId: optionalId, tenant: optionalId }
export const userQuery = z.object(whose)
