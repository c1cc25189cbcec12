// Rules that come with a decision, from outside.
import { z } from 'zod'
import { only } from '../http/schemas.ts'

export const rememberedRule = only({
  rule: z.string().min(1).max(500).describe('One of the suggestions, or a narrower one.'),
  scope: z.enum(['session', 'user', 'project']).describe('`project`: for everybody of the tenant.'),
  expiresAt: z
    .union([z.number().int(), z.string().max(40)])
    .optional()
    .describe('A time to come: milliseconds since 1970, or ISO 8601. Default: for good.'),
})

/** The same afterwards. */
export const acceptedRule = rememberedRule.extend({
  expiresAt: z.number().int().optional().describe('Milliseconds since 1970.'),
})
