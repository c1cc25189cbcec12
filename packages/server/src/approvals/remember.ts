// Rules that clients send with a decision.
import { z } from 'zod'
import { only } from '../http/schemas.ts'

export const rememberedRule = only({
  rule: z.string().min(1).max(500).describe('A suggested rule, or a narrower one.'),
  scope: z.enum(['session', 'user', 'project']).describe('`project`: for all users of the tenant.'),
  expiresAt: z
    .union([z.number().int(), z.string().max(40)])
    .optional()
    .describe('A future time: milliseconds since 1970, or ISO 8601. Default: never.'),
})

/** The stored form of `rememberedRule`. */
export const acceptedRule = rememberedRule.extend({
  expiresAt: z.number().int().optional().describe('Milliseconds since 1970.'),
})
