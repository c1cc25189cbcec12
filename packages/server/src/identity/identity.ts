// Identity as it is configured.
import type { Logger } from 'pino'
import type { IdentityConfig } from '../config/identity-config.ts'
import { type Identity, type OnProblem, refused } from './contract.ts'

/**
 * Makes what the configuration says. Give `refresh` to the engine as `currentPrincipal`, and the whole to `createService`.
 *
 * @throws OxbowError `config_invalid` when a key or a file is not what it must be
 * @example const identity = await createIdentity(config.identity, { onProblem: identityProblems(log) })
 */
export async function createIdentity(
  config: IdentityConfig,
  options: { readonly onProblem?: OnProblem } = {},
): Promise<Identity> {
  const { onProblem = () => {} } = options
  // Loaded only where they are used: what verifies tokens takes longer to load than the rest of a start.
  switch (config.mode) {
    case 'none':
      return openIdentity()
    case 'api-keys':
      return (await import('./api-keys/api-keys.ts')).apiKeyIdentity(config, onProblem)
    case 'jwt':
      return (await import('./jwt/jwt.ts')).jwtIdentity(config, onProblem)
    case 'introspection':
      return (await import('./introspection/introspection.ts')).introspectionIdentity(config, onProblem)
  }
}

/** For `onProblem`: what a caller is not told is in the log. */
export const identityProblems =
  (log: Logger): OnProblem =>
  ({ message, cause }) =>
    log.warn(cause === undefined ? {} : { err: cause }, message)

/** Everybody is who they say. */
export function openIdentity(): Identity {
  return {
    mode: 'none',
    authenticate: async () => refused('credentials_missing', 'This service has no identity configured.'),
    refresh: async (principal) => principal,
    ambient: false,
    schemes: {},
  }
}
