// Rules that come with a decision, from outside.
import { ADMIN, type ApprovalDecision, grants, OxbowError } from '@oxbow/core'
import { z } from 'zod'
import type { AppContext } from '../http/route.ts'
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

/** Without identity whoever reaches this service is the person at the machine. */
export function mayShareRules(c: AppContext): boolean {
  const caller = c.get('caller')
  return caller === 'anybody' || grants(caller?.permissions ?? [], ADMIN)
}

/** What everybody is allowed from now on is not for one user to say. @throws OxbowError `approval_forbidden` */
export function checkScope({ remember }: Pick<ApprovalDecision, 'remember'>, mayShare: boolean): void {
  if (remember?.scope !== 'project' || mayShare) return
  throw new OxbowError(
    'approval_forbidden',
    `A rule for the whole project needs the permission ${ADMIN}. Accept it for the session or the user.`,
  )
}
