// One connection to a server, from the first byte to its tool list.
import {
  Client,
  type ClientOptions,
  type JsonSchemaValidator,
  SUPPORTED_PROTOCOL_VERSIONS,
  type Tool,
} from '@modelcontextprotocol/client'
import { answerTo, type Elicitation } from '../elicitation.ts'
import { CONNECT_TIMEOUT_MS, isStdio, type McpServer, PROTOCOL_2026 } from '../options.ts'
import { type Listed, listed } from '../tools/listing.ts'
import { type HttpTransport, httpTransport } from '../transport/http-transport.ts'
import type { Unusable } from '../transport/repair.ts'
import { repairing } from '../transport/repairing.ts'
import { type StdioTransport, stdioTransport } from '../transport/stdio-transport.ts'
import type { Noise } from '../transport/stdout-reader.ts'

/** How long a server may ignore the newest protocol before the older one is tried. */
const PROBE_MS = 5_000

export interface Offers {
  readonly tools: readonly Listed[]
  readonly hasResources: boolean
  readonly hasPrompts: boolean
}

/** A connection of the library, with the calls in flight on it. */
export interface Dialled {
  readonly client: Client
  readonly transport: HttpTransport | StdioTransport
  readonly since: number
  readonly calls: Set<object>
  readonly asking: Set<Elicitation>
  offers: Offers
  lost: boolean
}

export interface DialEvents {
  /** The server changed its list, or sent an unreadable one. */
  readonly onTools: (line: Dialled, tools: readonly Listed[] | Error) => void
  readonly onUnusable: (method: string, unusable: readonly Unusable[]) => void
  readonly onClosed: (line: Dialled, error: Error) => void
}

/** `auto` starts with the newest protocol and falls back; `legacy` starts with `initialize`. */
export type Era = 'auto' | 'legacy'

/** The protocol era that the operator configured, if any. */
export const chosenEra = ({ protocolVersion }: McpServer): Era =>
  protocolVersion === undefined || protocolVersion === PROTOCOL_2026 ? 'auto' : 'legacy'

/** Connecting failed; the program's output meanwhile says more than the error. */
export class DialError extends Error {
  readonly said: string
  constructor(cause: unknown, said: string) {
    super('The connection could not be opened.', { cause })
    this.said = said
  }
}

/**
 * Opens a connection and reads the server's lists.
 *
 * @param timeoutMs for the whole process
 * @throws DialError
 */
export async function dial(
  server: McpServer,
  era: Era,
  { signal: closing, timeoutMs = CONNECT_TIMEOUT_MS }: { readonly signal: AbortSignal; readonly timeoutMs?: number },
  { onTools, onUnusable, onClosed }: DialEvents,
): Promise<Dialled> {
  let unusable: readonly Unusable[] = []
  const transport = repairing(isStdio(server) ? stdioTransport(server) : httpTransport(server), (sent, found) => {
    if (sent.method !== 'tools/list') return onUnusable(sent.method, found)
    unusable = sent.isFirst ? found : [...unusable, ...found]
  })
  const usable = async (tools: readonly Tool[]): Promise<Listed[]> => [
    ...(await listed(tools, server)),
    ...unusable.map(({ name, reason }) => ({ tool: { name }, skip: reason })),
  ]
  const asking = new Set<Elicitation>()
  const signal = AbortSignal.any([closing, AbortSignal.timeout(timeoutMs)])
  const limits = { signal, timeout: timeoutMs }
  const client = new Client(
    { name: 'oxbow', version: '0.1.0' },
    {
      // Only forms: they can be answered with yes or no, while a user cannot be sent to a URL.
      capabilities: { elicitation: { form: { applyDefaults: true } } },
      ...versionsFor(server, era, timeoutMs),
      jsonSchemaValidator: noValidator,
      listChanged: {
        tools: {
          onChanged: (error, tools) =>
            void (error === null && tools !== null ? usable(tools) : Promise.reject(error)).then(
              (all) => onTools(line, all),
              (fault: Error) => onTools(line, fault),
            ),
        },
      },
    },
  )
  const offers: Offers = { tools: [], hasResources: false, hasPrompts: false }
  const line: Dialled = { client, transport, since: performance.now(), calls: new Set(), asking, offers, lost: false }
  client.setRequestHandler('elicitation/create', (request) => answerTo(request, asking, server.onQuestion))
  client.onerror = () => {}
  client.onclose = () => onClosed(line, new Error('connection closed'))
  try {
    await Promise.race([client.connect(transport, limits), aborted(signal)])
    const { tools, resources, prompts } = client.getServerCapabilities() ?? {}
    const offered = tools === undefined ? [] : (await client.listTools(undefined, limits)).tools
    line.offers = {
      tools: await usable(offered),
      hasResources: resources !== undefined,
      hasPrompts: prompts !== undefined,
    }
  } catch (error) {
    line.lost = true
    // A program that has not exited yet may still write to standard error.
    await transport.close().catch(() => {})
    throw new DialError(faultIn(transport) ?? error, wordsIn(transport))
  }
  void client.autoOpenedSubscription?.closed.then((how) => {
    if (how !== 'local') onClosed(line, new Error('the server ended its stream of changes'))
  })
  return line
}

function versionsFor({ protocolVersion }: McpServer, era: Era, timeoutMs: number): ClientOptions {
  if (protocolVersion === PROTOCOL_2026) return { versionNegotiation: { mode: { pin: PROTOCOL_2026 } } }
  const probe = { timeoutMs: Math.min(PROBE_MS, timeoutMs / 2) }
  const older = protocolVersion && SUPPORTED_PROTOCOL_VERSIONS.filter((it) => it <= protocolVersion)
  return { versionNegotiation: { mode: era, probe }, ...(older && { supportedProtocolVersions: older }) }
}

type AnyTransport = HttpTransport | StdioTransport

/** The program's standard error, and invalid lines on its standard output. */
export function wordsIn(transport: AnyTransport): string {
  if (!('said' in transport)) return ''
  const { lines, last } = transport.noise()
  const noise =
    lines === 0
      ? ''
      : `${lines} ${lines === 1 ? 'line' : 'lines'} on stdout ${lines === 1 ? 'is' : 'are'} not JSON-RPC, the last: ${last}`
  return [transport.said(), noise].filter((it) => it !== '').join('; ')
}

/** Why this client closed the connection, if it did. */
export const faultIn = (transport: AnyTransport): Error | undefined =>
  'fault' in transport ? transport.fault() : undefined

export const noiseOf = (transport: AnyTransport | undefined): Noise | undefined =>
  transport !== undefined && 'noise' in transport ? transport.noise() : undefined

/** Rejects when the signal fires; never resolves. */
export function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason)
    else signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}

// Results are untrusted text in any case, and a server's schema can be crafted to keep the process busy.
const noValidator: NonNullable<ClientOptions['jsonSchemaValidator']> = {
  getValidator<T>(): JsonSchemaValidator<T> {
    return (data) => ({ valid: true, data: data as T, errorMessage: undefined })
  },
}
