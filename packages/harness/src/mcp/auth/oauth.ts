// OAuth as the specification of MCP has it. Discovery, PKCE, registration and refreshing are the library's; here is what we
// say about ourselves, and where the tokens are kept.
import { randomUUID } from 'node:crypto'
import {
  ClientCredentialsProvider,
  type OAuthClientProvider,
  type OAuthDiscoveryState,
  PrivateKeyJwtProvider,
  type StoredOAuthClientInformation,
  type StoredOAuthTokens,
} from '@modelcontextprotocol/client'

/** Where tokens and registrations are kept between starts. The values are secrets: encrypt them, or guard who may read. */
export interface McpTokenStore {
  get(key: string): string | undefined | Promise<string | undefined>
  set(key: string, value: string): void | Promise<void>
}

/** A service that acts for itself. */
interface ClientCredentials {
  readonly type: 'client-credentials'
  readonly clientId: string
  readonly clientSecret: string
  /** The authorization server that the secret is for, as its metadata names it. It is sent nowhere else, whatever the server says. */
  readonly issuer: string
  readonly scope?: string
}

/** The same, proven with a key instead of a secret. */
interface PrivateKeyJwt {
  readonly type: 'private-key-jwt'
  readonly clientId: string
  /** PEM. */
  readonly privateKey: string
  /** For example `ES256`. */
  readonly algorithm: string
  /** The authorization server that the key is for. */
  readonly issuer: string
  readonly scope?: string
}

/** A person who signs in with a browser. */
interface AuthorizationCode {
  readonly type: 'authorization-code'
  /** Where the authorization server sends the person back to. */
  readonly redirectUrl: string
  /** Sends the person to the address, and gives back the query of `redirectUrl` when they return. */
  readonly authorize: (url: URL) => Promise<URLSearchParams>
  /** Default: in memory, until the process ends. */
  readonly store?: McpTokenStore
  /** Of a client that is registered already; without it the client registers itself where the server lets it. */
  readonly clientId?: string
  readonly clientSecret?: string
  /** The authorization server that knows the client: needed with `clientSecret`. */
  readonly issuer?: string
  /** Where a document about this client can be read, for servers that take its address as the id. */
  readonly clientMetadataUrl?: string
  readonly scope?: string
}

export type McpAuth = ClientCredentials | PrivateKeyJwt | AuthorizationCode

/** A person's sign-in that has been begun: the query of their return, once they have come back. */
export interface PendingSignIn {
  callback(): Promise<URLSearchParams> | undefined
}

interface Kept {
  client?: StoredOAuthClientInformation
  tokens?: StoredOAuthTokens
  verifier?: string
  discovery?: OAuthDiscoveryState | undefined
}

/** One provider for each sign-in at an address, shared by connections with the same settings and kept when they reconnect. */
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
        ...(scope !== undefined && { scope }),
      })
    }
    case 'private-key-jwt': {
      const { clientId, privateKey, algorithm, issuer: expectedIssuer, scope } = auth
      return new PrivateKeyJwtProvider({
        clientId,
        privateKey,
        algorithm,
        expectedIssuer,
        ...(scope !== undefined && { scope }),
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
  /** One after the other: two that change it at once would lose a change. */
  const change = (changes: Partial<Kept>): Promise<void> => {
    last = last.catch(() => {}).then(async () => store.set(key, JSON.stringify({ ...(await kept()), ...changes })))
    return last
  }
  let state = ''
  let signIn: Promise<URLSearchParams> | undefined
  return {
    redirectUrl,
    ...(clientMetadataUrl !== undefined && { clientMetadataUrl }),
    clientMetadata: {
      client_name: 'Oxbow',
      redirect_uris: [redirectUrl],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      ...(clientId === undefined
        ? { token_endpoint_auth_method: 'none' }
        : { token_endpoint_auth_method: clientSecret === undefined ? 'none' : 'client_secret_basic' }),
      ...(scope !== undefined && { scope }),
    },
    state() {
      state = randomUUID()
      return state
    },
    async clientInformation() {
      if (clientId !== undefined)
        return {
          client_id: clientId,
          ...(clientSecret !== undefined && { client_secret: clientSecret }),
          ...(issuer !== undefined && { issuer }),
        }
      return (await kept()).client
    },
    saveClientInformation: (client) => change({ client }),
    tokens: async () => (await kept()).tokens,
    // What has been discovered holds for one sign-in: the server may change whom it trusts.
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
      // The caller that waits for it gets the error; there may be none yet.
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
