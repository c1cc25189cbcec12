// OAuth by the MCP specification. The library handles discovery, PKCE, registration and refreshing; this file holds the
// client's own metadata and the storage of tokens.
import { randomUUID } from 'node:crypto'
import {
  ClientCredentialsProvider,
  type OAuthClientProvider,
  type OAuthDiscoveryState,
  PrivateKeyJwtProvider,
  type StoredOAuthClientInformation,
  type StoredOAuthTokens,
} from '@modelcontextprotocol/client'
import { defined } from '@oxbow/core/internal'

/** Stores tokens and registrations between starts. The values are secrets: encrypt them, or restrict read access. */
export interface McpTokenStore {
  get(key: string): string | undefined | Promise<string | undefined>
  set(key: string, value: string): void | Promise<void>
}

/** A service that acts on its own behalf. */
interface ClientCredentials {
  readonly type: 'client-credentials'
  readonly clientId: string
  readonly clientSecret: string
  /** The authorization server of the secret, as named in its metadata. The secret is never sent anywhere else. */
  readonly issuer: string
  readonly scope?: string
}

/** The same, authenticated by a key instead of a secret. */
interface PrivateKeyJwt {
  readonly type: 'private-key-jwt'
  readonly clientId: string
  /** PEM. */
  readonly privateKey: string
  /** For example `ES256`. */
  readonly algorithm: string
  /** The authorization server of the key. */
  readonly issuer: string
  readonly scope?: string
}

/** A person who signs in with a browser. */
interface AuthorizationCode {
  readonly type: 'authorization-code'
  /** The URL to which the authorization server returns the person. */
  readonly redirectUrl: string
  /** Opens the URL for the person, and resolves with the query of `redirectUrl` on their return. */
  readonly authorize: (url: URL) => Promise<URLSearchParams>
  /** Default: in memory, until the process ends. */
  readonly store?: McpTokenStore
  /** The id of a registered client; without it the client registers itself where the server allows it. */
  readonly clientId?: string
  readonly clientSecret?: string
  /** The authorization server that knows the client; required with `clientSecret`. */
  readonly issuer?: string
  /** The URL of a document about this client, for servers that accept it as the client id. */
  readonly clientMetadataUrl?: string
  readonly scope?: string
}

export type McpAuth = ClientCredentials | PrivateKeyJwt | AuthorizationCode

/** A sign-in in progress: the query of the person's return, once they are back. */
export interface PendingSignIn {
  callback(): Promise<URLSearchParams> | undefined
}

interface Kept {
  client?: StoredOAuthClientInformation
  tokens?: StoredOAuthTokens
  verifier?: string
  discovery?: OAuthDiscoveryState | undefined
}

/** One provider for each sign-in at a URL, shared by connections with equal settings and kept across reconnects. */
const providers = new WeakMap<McpAuth, Map<string, Provider>>()

type Provider = OAuthClientProvider & Partial<PendingSignIn>

export function authProvider(auth: McpAuth, url: string): Provider {
  const byUrl = providers.get(auth) ?? new Map<string, Provider>()
  providers.set(auth, byUrl)
  const known = byUrl.get(url)
  if (known !== undefined) return known
  const made = newProvider(auth, url)
  byUrl.set(url, made)
  return made
}

function newProvider(auth: McpAuth, url: string): Provider {
  switch (auth.type) {
    case 'client-credentials': {
      const { clientId, clientSecret, issuer: expectedIssuer, scope } = auth
      return new ClientCredentialsProvider({
        clientId,
        clientSecret,
        expectedIssuer,
        ...defined({ scope }),
      })
    }
    case 'private-key-jwt': {
      const { clientId, privateKey, algorithm, issuer: expectedIssuer, scope } = auth
      return new PrivateKeyJwtProvider({
        clientId,
        privateKey,
        algorithm,
        expectedIssuer,
        ...defined({ scope }),
      })
    }
    case 'authorization-code':
      return personProvider(auth, url)
  }
}

function personProvider(auth: AuthorizationCode, url: string): OAuthClientProvider & PendingSignIn {
  const { redirectUrl, clientId, clientSecret, clientMetadataUrl, issuer, scope } = auth
  const store = auth.store ?? inMemory()
  const key = `mcp:${new URL(url).href}`
  const kept = async (): Promise<Kept> => JSON.parse((await store.get(key)) ?? '{}') as Kept
  let last: Promise<void> = Promise.resolve()
  /** Updates run one at a time: concurrent ones would lose a change. */
  const change = (changes: Partial<Kept>): Promise<void> => {
    last = last.catch(() => {}).then(async () => store.set(key, JSON.stringify({ ...(await kept()), ...changes })))
    return last
  }
  let state = ''
  let signIn: Promise<URLSearchParams> | undefined
  return {
    redirectUrl,
    ...defined({ clientMetadataUrl }),
    clientMetadata: {
      client_name: 'Oxbow',
      redirect_uris: [redirectUrl],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      ...(clientId === undefined
        ? { token_endpoint_auth_method: 'none' }
        : { token_endpoint_auth_method: clientSecret === undefined ? 'none' : 'client_secret_basic' }),
      ...defined({ scope }),
    },
    state() {
      state = randomUUID()
      return state
    },
    async clientInformation() {
      if (clientId !== undefined)
        return {
          client_id: clientId,
          ...defined({ client_secret: clientSecret, issuer }),
        }
      return (await kept()).client
    },
    saveClientInformation: (client) => change({ client }),
    tokens: async () => (await kept()).tokens,
    // Discovered metadata is valid for one sign-in: the server may change its authorization server.
    saveTokens: (tokens) => change({ tokens, discovery: undefined }),
    saveCodeVerifier: (verifier) => change({ verifier }),
    codeVerifier: async () => (await kept()).verifier ?? '',
    saveDiscoveryState: (discovery) => change({ discovery }),
    discoveryState: async () => (await kept()).discovery,
    async invalidateCredentials(what) {
      const fields = what === 'all' ? ['client', 'tokens', 'verifier', 'discovery'] : [what]
      await change(Object.fromEntries(fields.map((it) => [it, undefined])))
    },
    redirectToAuthorization(address) {
      const expected = state
      signIn = (async () => {
        const query = await auth.authorize(address)
        if (query.get('state') !== expected)
          throw new Error('The browser came back with the state of another sign-in. Sign in again.')
        return query
      })()
      // The waiting caller receives the error; there may be none yet.
      signIn.catch(() => {})
    },
    callback() {
      const begun = signIn
      signIn = undefined
      return begun
    },
  }
}

function inMemory(): McpTokenStore {
  const values = new Map<string, string>()
  return { get: (key) => values.get(key), set: (key, value) => void values.set(key, value) }
}
