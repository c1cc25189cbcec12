import { defined } from '../checks/defined.ts'
import { OxbowError } from '../errors.ts'
import type { Principal } from '../events/types.ts'
import type { SessionKey, SessionQuery, SessionSummary } from '../ports.ts'
import type { Session } from './session.ts'

/** An engine, as far as it is needed here. */
interface Sessions {
  session(key: SessionKey, options: { agent: string }): Pick<Session, 'release'>
  sessions(query: SessionQuery): Promise<SessionSummary[]>
}

/**
 * Releases every parked turn: of a user, of a tenant, or of all. What parked them, such as a missing disk or one bad
 * turn, has been mended.
 *
 * @param options `principal`: who releases them; default: the user of each session
 * @returns the sessions whose turns resume
 * @example const resumed = await releaseParked(engine, { tenant: 'acme' })
 */
export async function releaseParked(
  engine: Sessions,
  whose: { readonly tenant?: string; readonly user?: string } = {},
  options: { readonly principal?: Principal } = {},
): Promise<SessionKey[]> {
  const released: SessionKey[] = []
  let before: number | undefined
  for (;;) {
    const page = await engine.sessions({ ...whose, status: 'parked', ...defined({ before }) })
    for (const { key, agent } of page) {
      try {
        await engine.session(key, { agent }).release(options)
        released.push(key)
      } catch (error) {
        // Somebody else was first, or another engine has its agent.
        if (!(error instanceof OxbowError) || (error.code !== 'not_parked' && error.code !== 'unknown_agent'))
          throw error
      }
    }
    if (page.length === 0) return released
    before = page.at(-1)!.updatedAt
  }
}
