// Every setting: its key, what it allows, what it is for. Variables, errors and documentation come from here.

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
    'The language model. Default: models.aliases.default, else that of the first provider whose key is set, else the offline model.',
    'the name or alias of one of [models], provider:model (for example "openai:gpt-5"), a provider that has a default model, or "offline"',
  ).optional(),
  models: modelsSetting.optional(),
  mcp: mcpSetting.optional(),
  server: z.strictObject({
    host: textSetting('Where to listen. Only loopback addresses while identity.mode is "none".'),
    port: integer(0, 65_535, 'The port; 0 takes a free one.'),
    heartbeat: duration('1s', '5m', 'How often an idle stream sends a comment, so that nothing in between closes it.'),
    onDisconnect: choice(['stop', 'continue'], 'What becomes of a turn when everybody who watched it has left.'),
    disconnectGrace: duration('0ms', '1h', 'How long a turn waits for somebody to come back before it is stopped.'),
    recheck: duration(
      '1s',
      '1h',
      'How often it is asked, with identity on, whether readers of open streams still may.',
    ),
    rightsMaxAge: duration(
      '0ms',
      '1h',
      'With identity on: how old the rights of a caller may be when a tool call starts or a waited answer is written.',
    ),
    shutdownGrace: duration('0ms', '1h', 'How long running turns may go on when the service stops.'),
    limits: z.strictObject({
      bodyBytes: integer(1_024, 1_073_741_824, 'The largest request body.'),
      headerBytes: integer(1_024, 1_048_576, 'The largest request head.'),
      messageLength: integer(1, 100_000_000, 'The longest message, in characters.'),
      jsonDepth: integer(4, 1_000, 'The deepest nesting of a request body.'),
      requestTime: duration('1s', '1h', 'How long a request may take to arrive.'),
    }),
    allowedHosts: list(
      /^[^\s/]+$/,
      'Names under which the service may be asked (the Host header), with identity on; empty: any.',
      'host names, each with or without a port',
    ),
    mcp: boolean('Whether the agents are tools of the Model Context Protocol, at POST /mcp.'),
    metrics: choice(['open', 'admin'], 'Who may read /metrics with identity on: everybody, or holders of oxbow:admin.'),
    cors: z.strictObject({
      origins: list(
        /^https?:\/\/[^\s/?#*]+$/,
        'Pages that may use this service from a browser. Empty: none but its own.',
        'origins such as "https://app.example.com"; no wildcards',
      ),
      credentials: boolean('Whether those pages may send cookies.'),
    }),
    rateLimits: z.strictObject({
      requestsPerMinute: integer(0, 1_000_000, 'Requests of one principal per minute; 0: no limit.'),
      concurrentTurns: integer(0, 100_000, 'Turns of one principal that may run when another one begins; 0: no limit.'),
      openStreams: integer(
        0,
        1_000_000,
        'Event streams and WebSockets that one principal may have open at a time; 0: no limit.',
      ),
      failedAuthenticationsPerMinute: integer(
        1,
        1_000_000,
        'Wrong credentials from one address per minute; more are answered with 429.',
      ),
    }),
  }),
  store: z.strictObject({
    path: textSetting(
      'The SQLite file with all sessions; ":memory:" keeps them in memory only.',
      'a path, or ":memory:"',
    ),
    url: secret(
      'A PostgreSQL database instead of the file, shared by any number of replicas.',
      'postgres://user:password@host:5432/database',
      (it) => /^postgres(ql)?:\/\//.test(it) && URL.canParse(it),
    ).optional(),
  }),
  agent: z.strictObject({
    instructions: textSetting('The system prompt of the agent. Default: the one that it comes with.').optional(),
    mode: choice(MODES, 'How calls are judged that no rule speaks of; "default": what only reads runs, the rest asks.'),
    allow: list(RULE, 'Calls that run without asking.', RULES),
    ask: list(RULE, 'Calls that need an approval; stronger than allow.', RULES),
    deny: list(RULE, 'Calls that never run; stronger than ask.', RULES),
    approvalTimeout: duration('1s', '8760h', 'How long a person may take to decide on an approval.'),
    maxSteps: integer(1, 10_000, 'Model calls per turn that may use tools; then one more without tools ends it.'),
    totalTimeout: duration('1s', '24h', 'Work on one turn, waiting for people excluded.'),
    idleTimeout: duration('1s', '24h', 'The longest time without any sign of progress in a turn.'),
    stateTimeouts: z.strictObject({
      created: duration('1s', '8760h', 'The longest time a turn may wait for its worker; then it fails.'),
      running: duration(
        '1s',
        '8760h',
        'The longest time in one stay at work. Default: totalTimeout and a minute.',
      ).optional(),
      waitingTool: duration(
        '1s',
        '8760h',
        'The longest time in one stay with a tool. Default: as for running.',
      ).optional(),
      waitingUser: duration('1s', '8760h', 'The longest time a turn may wait for people.'),
    }),
    compaction: z.strictObject({
      trigger: integer(3, 100_000, 'Messages after which the conversation that the model sees is compacted.'),
      keep: integer(1, 100_000, 'The newest messages, which stay as they are; below trigger − 1.'),
      threshold: z
        .number()
        .gt(0)
        .lt(1)
        .meta({
          kind: 'number',
          description: 'The part of the model’s window after which it is compacted.',
          allowed: 'a number between 0 and 1',
        } satisfies About),
      model: textSetting(
        'The model that writes the summaries. Default: the agent’s own.',
        'the name or alias of one of [models], or provider:model',
      ).optional(),
    }),
    agents: textSetting(
      'A folder with further agents in Markdown, to which the agent can hand tasks.',
      'the path of a folder',
    ).optional(),
    temperature: z
      .number()
      .min(0)
      .max(2)
      .meta({
        kind: 'number',
        description: 'Sampling temperature; without it the model’s own.',
        allowed: 'a number from 0 to 2',
      } satisfies About)
      .optional(),
    maxOutputTokens: integer(
      1,
      10_000_000,
      'The longest answer, in tokens; without it the model’s own limit.',
    ).optional(),
  }),
  knowledge: knowledgeSettings,
  telemetry: z.strictObject({
    endpoint: url(
      'Where OpenTelemetry traces of turns go, by OTLP over HTTP, such as "http://127.0.0.1:4318". Without it, none are made.',
    ).optional(),
  }),
  log: z.strictObject({
    level: choice(['trace', 'debug', 'info', 'warn', 'error', 'silent'], 'What is logged.'),
    format: choice(['auto', 'pretty', 'json'], 'JSON lines, or lines for people; auto: pretty on a terminal.'),
  }),
  identity: identitySettings,
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
  'log.level': 'info',
  'log.format': 'auto',
  ...identityDefaults,
  ...protocolDefaults,
}

/** Where a profile differs. In `prod` what must be given has no default. */
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
