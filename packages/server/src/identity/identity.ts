// Creates the configured identity.
import type { Logger } from 'pino'
import type { IdentityConfig } from '../config/identity-config.ts'
import { type Identity, type OnProblem, refused } from './contract.ts'

/**
 * Creates the identity that the configuration describes. Pass `refresh` to the engine as `currentPrincipal`, and the
 * whole identity to `createService`.
 *
 * @throws OxbowError `config_invalid` when a key or a file is invalid
 * @example const identity = await createIdentity(config.identity, { onProblem: identityProblems(log) })
 */
export async function createIdentity(
  config: IdentityConfig,
  options: { readonly onProblem?: OnProblem } = {},
): Promise<Identity> {
  const { onProblem = () => {} } = options
  // Imported on demand: the token library takes longer to load than the rest of the service.
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

/** For `onProblem`: logs what the caller must not see. */
export const identityProblems =
  (log: Logger): OnProblem =>
  ({ message, cause }) =>
    log.warn(cause === undefined ? {} : { err: cause }, message)

/** Callers are not authenticated: the request names the user. */
export function openIdentity(): Identity {
  return {
    mode: 'none',
    authenticate: async () => refused('credentials_missing', 'This service has no identity configured.'),
    refresh: async (principal) => principal,
    ambient: false,
    schemes: {},
  }
}
