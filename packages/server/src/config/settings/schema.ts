// Every setting: its key, its allowed values and its description. Environment variables, errors and documentation are
// derived from it.

import { MODES } from '@oxbow/core/internal'
import { z } from 'zod'
import { identityDefaults, identitySettings } from './identity-settings.ts'
import {
  type About,
  boolean,
  choice,
  duration,
  integer,
  list,
  type SettingKind,
  secret,
  textSetting,
  url,
} from './kinds.ts'
import { knowledgeSettings } from './knowledge-settings.ts'
import { mcpSetting } from './mcp-settings.ts'
import { modelsSetting } from './models-settings.ts'
import { agentProtocolSettings, protocolDefaults, taskSettings } from './protocol-settings.ts'

const RULE = /^[A-Za-z0-9_*-]{1,128}(?:\(.+\))?$/s
const RULES = 'rules such as "save_note", "get_*" or "tool(pattern)"'

export const settings = z.strictObject({
  model: textSetting(
    'The language model. Default: models.aliases.default, then the default model of the first provider whose key is set, then the offline model.',
    'the name or alias of one of [models], provider:model (for example "openai:gpt-5"), a provider that has a default model, or "offline"',
  ).optional(),
  models: modelsSetting.optional(),
  mcp: mcpSetting.optional(),
  server: z.strictObject({
    host: textSetting('The address to listen on. Only loopback addresses are allowed while identity.mode is "none".'),
    port: integer(0, 65_535, 'The port; 0 chooses a free one.'),
    heartbeat: duration('1s', '5m', 'How often an idle stream sends a comment, so that proxies keep it open.'),
    onDisconnect: choice(['stop', 'continue'], 'What happens to a turn when its last reader disconnects.'),
    disconnectGrace: duration('0ms', '1h', 'How long a turn waits for a reader to reconnect before it is stopped.'),
    recheck: duration(
      '1s',
      '1h',
      'With identity enabled: how often the rights of readers of open streams are checked again.',
    ),
    rightsMaxAge: duration(
      '0ms',
      '1h',
      'With identity enabled: the maximum age of a caller’s rights when a tool call starts or a pending answer is sent.',
    ),
    shutdownGrace: duration('0ms', '1h', 'How long running turns may continue when the service stops.'),
    role: choice(
      ['all', 'api', 'worker'],
      'What this replica does: serve requests and work on turns, only the first, or only the second.',
    ),
    maxTurns: integer(
      0,
      100_000,
      'Turns that this replica works on at once; more wait in the queue for a replica with room. 0: no limit.',
    ),
    limits: z.strictObject({
      bodyBytes: integer(1_024, 1_073_741_824, 'The maximum size of a request body, in bytes.'),
      headerBytes: integer(1_024, 1_048_576, 'The maximum size of the request headers, in bytes.'),
      messageLength: integer(1, 100_000_000, 'The maximum length of a message, in characters.'),
      jsonDepth: integer(4, 1_000, 'The maximum nesting depth of a request body.'),
      requestTime: duration('1s', '1h', 'The time limit for a request to arrive.'),
    }),
    allowedHosts: list(
      /^[^\s/]+$/,
      'With identity enabled: accepted values of the Host header; empty: any.',
      'host names, each with or without a port',
    ),
    mcp: boolean('Whether POST /mcp offers the agents as tools of the Model Context Protocol.'),
    metrics: choice(
      ['open', 'admin'],
      'With identity enabled: who may read /metrics, anyone or holders of oxbow:admin.',
    ),
    cors: z.strictObject({
      origins: list(
        /^https?:\/\/[^\s/?#*]+$/,
        'Origins whose pages may use this service from a browser. Empty: only the service’s own.',
        'origins such as "https://app.example.com"; no wildcards',
      ),
      credentials: boolean('Whether pages of these origins may send cookies.'),
    }),
    rateLimits: z.strictObject({
      requestsPerMinute: integer(0, 1_000_000, 'Requests of one principal per minute; 0: no limit.'),
      concurrentTurns: integer(0, 100_000, 'Concurrent turns of one principal; 0: no limit.'),
      openStreams: integer(0, 1_000_000, 'Event streams and WebSockets that one principal may have open; 0: no limit.'),
      failedAuthenticationsPerMinute: integer(
        1,
        1_000_000,
        'Invalid credentials from one address per minute; further attempts get a 429.',
      ),
    }),
  }),
  store: z.strictObject({
    path: textSetting(
      'The SQLite file with all sessions; ":memory:" keeps them in memory only.',
      'a path, or ":memory:"',
    ),
    url: secret(
      'A PostgreSQL database instead of the file, shared by any number of replicas; or a Redis server, which can lose events.',
      'postgres://user:password@host:5432/database or redis://user:password@host:6379',
      (it) => /^(postgres(ql)?|rediss?):\/\//.test(it) && URL.canParse(it),
    ).optional(),
    hot: secret(
      'A Redis server beside the database, for snapshots, messages and jobs. It may lose everything.',
      'redis://user:password@host:6379, with a PostgreSQL database as store.url',
      (it) => /^rediss?:\/\//.test(it) && URL.canParse(it),
    ).optional(),
    acceptLoss: boolean('Allows Redis alone as store.url in profile prod, although it can lose acknowledged events.'),
  }),
  agent: z.strictObject({
    instructions: textSetting('The system prompt of the agent. Default: the agent’s own.').optional(),
    mode: choice(
      MODES,
      'How calls are treated that no rule decides. "default": read-only calls run, all others need approval.',
    ),
    allow: list(RULE, 'Calls that run without approval.', RULES),
    ask: list(RULE, 'Calls that need approval; takes precedence over allow.', RULES),
    deny: list(RULE, 'Calls that never run; takes precedence over ask.', RULES),
    approvalTimeout: duration('1s', '8760h', 'How long an approval stays open before it expires.'),
    maxSteps: integer(
      1,
      10_000,
      'Model calls per turn that may use tools; one more call without tools then ends the turn.',
    ),
    totalTimeout: duration('1s', '24h', 'The time limit of a turn, not counting the time it waits for people.'),
    idleTimeout: duration('1s', '24h', 'The maximum time without progress in a turn.'),
    stateTimeouts: z.strictObject({
      created: duration('1s', '8760h', 'The maximum time a turn may wait for a worker before it fails.'),
      running: duration(
        '1s',
        '8760h',
        'The maximum time a turn may stay in the state running. Default: totalTimeout plus one minute.',
      ).optional(),
      waitingTool: duration(
        '1s',
        '8760h',
        'The maximum time a turn may stay in a tool call. Default: the same as running.',
      ).optional(),
      waitingUser: duration('1s', '8760h', 'The maximum time a turn may wait for people.'),
    }),
    compaction: z.strictObject({
      trigger: integer(
        3,
        100_000,
        'The number of messages in the model’s context after which the conversation is compacted.',
      ),
      keep: integer(1, 100_000, 'The number of newest messages that compaction keeps; less than trigger − 1.'),
      threshold: z
        .number()
        .gt(0)
        .lt(1)
        .meta({
          kind: 'number',
          description: 'The fraction of the model’s context window after which the conversation is compacted.',
          allowed: 'a number between 0 and 1',
        } satisfies About),
      model: textSetting(
        'The model that writes the summaries. Default: the agent’s own.',
        'the name or alias of one of [models], or provider:model',
      ).optional(),
    }),
    agents: textSetting(
      'A folder of agents in Markdown to which the agent can delegate tasks.',
      'the path of a folder',
    ).optional(),
    temperature: z
      .number()
      .min(0)
      .max(2)
      .meta({
        kind: 'number',
        description: 'The sampling temperature. Default: the model’s own.',
        allowed: 'a number from 0 to 2',
      } satisfies About)
      .optional(),
    maxOutputTokens: integer(
      1,
      10_000_000,
      'The maximum length of an answer, in tokens. Default: the model’s own limit.',
    ).optional(),
  }),
  knowledge: knowledgeSettings,
  telemetry: z.strictObject({
    endpoint: url(
      'The OTLP/HTTP endpoint for OpenTelemetry traces of turns, such as "http://127.0.0.1:4318". Unset: traces are disabled.',
    ).optional(),
  }),
  log: z.strictObject({
    level: choice(['trace', 'debug', 'info', 'warn', 'error', 'silent'], 'The lowest level that is logged.'),
    format: choice(['auto', 'pretty', 'json'], 'The format of log lines; auto: pretty on a terminal, JSON otherwise.'),
  }),
  identity: identitySettings,
  retention: z.strictObject({
    days: integer(0, 36_500, 'How long sessions are kept after their last event, in days; 0: for good.'),
    tenants: list(
      /^[A-Za-z0-9_.-]{1,64}=\d{1,5}$/,
      'Other periods for single tenants.',
      'TENANT=DAYS, for example "acme=30"',
    ),
  }),
  tasks: taskSettings,
  agentProtocol: agentProtocolSettings,
})

export type Settings = z.output<typeof settings>
export const PROFILES = ['local', 'test', 'prod'] as const
export type Profile = (typeof PROFILES)[number]

export const DEFAULTS: Readonly<Record<string, unknown>> = {
  'server.host': '127.0.0.1',
  'server.port': 8080,
  'server.heartbeat': '15s',
  'server.onDisconnect': 'stop',
  'server.disconnectGrace': '5s',
  'server.recheck': '30s',
  'server.rightsMaxAge': '5s',
  'server.shutdownGrace': '10s',
  'server.role': 'all',
  'server.maxTurns': 0,
  'server.limits.bodyBytes': 2_097_152,
  'server.limits.headerBytes': 16_384,
  'server.limits.messageLength': 200_000,
  'server.limits.jsonDepth': 64,
  'server.limits.requestTime': '30s',
  'server.allowedHosts': [],
  'server.mcp': true,
  'server.metrics': 'admin',
  'server.cors.origins': [],
  'server.cors.credentials': false,
  'server.rateLimits.requestsPerMinute': 0,
  'server.rateLimits.concurrentTurns': 0,
  'server.rateLimits.openStreams': 1_000,
  'server.rateLimits.failedAuthenticationsPerMinute': 30,
  'store.path': '.oxbow/oxbow.db',
  'store.acceptLoss': false,
  'agent.mode': 'default',
  'agent.allow': [],
  'agent.ask': [],
  'agent.deny': [],
  'agent.approvalTimeout': '168h',
  'agent.maxSteps': 10,
  'agent.totalTimeout': '10m',
  'agent.idleTimeout': '2m',
  'agent.stateTimeouts.created': '1h',
  'agent.stateTimeouts.waitingUser': '720h',
  'agent.compaction.trigger': 30,
  'agent.compaction.keep': 10,
  'agent.compaction.threshold': 0.6,
  'knowledge.embedder.protocol': 'openai',
  'retention.days': 0,
  'retention.tenants': [],
  'log.level': 'info',
  'log.format': 'auto',
  ...identityDefaults,
  ...protocolDefaults,
}

/** The defaults that differ by profile. In `prod`, required settings have no default. */
export const PROFILE_DEFAULTS: Readonly<Record<Profile, Readonly<Record<string, unknown>>>> = {
  local: {},
  test: { 'server.port': 0, 'store.path': ':memory:', 'log.level': 'warn' },
  prod: {
    'server.rateLimits.requestsPerMinute': 600,
    'server.rateLimits.concurrentTurns': 20,
    'store.path': undefined,
    'log.format': 'json',
  },
}

export interface Setting {
  readonly key: string
  readonly variable: string
  readonly kind: SettingKind
  readonly description: string
  readonly allowed: string
}

/** Every key with its variable, in the order of the schema. */
export const SETTINGS: readonly Setting[] = leaves(settings, '')

export function leaves(schema: z.ZodObject, prefix: string): Setting[] {
  return Object.entries(schema.shape).flatMap(([name, field]): Setting[] => {
    const key = `${prefix}${name}`
    const inner = field instanceof z.ZodOptional ? field.unwrap() : field
    if (inner instanceof z.ZodObject) return leaves(inner, `${key}.`)
    const { kind, description, allowed } = (inner as z.ZodType).meta() as unknown as About
    const variable = `OXBOW_${key
      .replace(/[A-Z]/g, (letter) => `_${letter}`)
      .replaceAll('.', '_')
      .toUpperCase()}`
    return [{ key, variable, kind, description, allowed }]
  })
}
