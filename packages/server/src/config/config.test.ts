// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the file has placeholders of its own.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { describeConfig, loadConfig } from '../index.ts'
import { parseDuration } from './settings/duration.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'oxbow-config-'))
})
afterEach(() => rm(folder, { recursive: true }))

const file = async (text: string): Promise<string> => {
  const path = join(folder, 'oxbow.toml')
  await writeFile(path, text)
  return path
}
const load = async (toml: string, environment: Record<string, string> = {}, overrides = {}) =>
  loadConfig({ environment: { OXBOW_CONFIG: await file(toml), ...environment }, overrides })
const problemsOf = async (loading: Promise<unknown>): Promise<string[]> => {
  const error = await loading.then(
    () => undefined,
    (it: unknown) => it as { code: string; details: { problems: string[] } },
  )
  expect(error?.code).toBe('config_invalid')
  return error!.details.problems
}

describe('Y15, B13: models by configuration', () => {
  test('have names, aliases and every field that the file sets', async () => {
    const toml = `
model = "fast"
[models.aliases]
default = "main"
fast = "small"
[models.main]
provider = "openai"
model = "gpt-5"
keyVariable = "TEAM_KEY"
headers = { authorization = "Bearer \${TEAM_TOKEN}" }
options = { reasoning_effort = "low" }
timeouts = { firstByte = "2m" }
limits = { concurrency = 8, requestsPerMinute = 300 }
price = { input = 1.25, output = 10 }
contextWindow = 400000
fallbacks = ["small", { model = "local", weight = 2 }]
[models.small]
provider = "deepseek"
[models.local]
provider = "vllm"
model = "qwen3:8b"
baseUrl = "http://gpu:8000/v1"`
    expect((await load(toml, { TEAM_TOKEN: 't' })).models).toEqual({
      default: 'fast',
      aliases: { default: 'main', fast: 'small' },
      models: {
        main: {
          provider: 'openai',
          model: 'gpt-5',
          keyVariable: 'TEAM_KEY',
          headers: { authorization: 'Bearer t' },
          options: { reasoning_effort: 'low' },
          timeouts: { firstByteMs: 120_000 },
          limits: { concurrency: 8, requestsPerMinute: 300 },
          price: { input: 1.25, output: 10 },
          contextWindow: 400_000,
          fallbacks: [{ model: 'small' }, { model: 'local', weight: 2 }],
        },
        small: { provider: 'deepseek' },
        local: { provider: 'vllm', model: 'qwen3:8b', baseUrl: 'http://gpu:8000/v1' },
      },
    })
  })

  test('can come from an environment variable', async () => {
    const OXBOW_MODELS = JSON.stringify({ main: { provider: 'deepseek' } })
    expect((await loadConfig({ environment: { OXBOW_MODELS } })).models.models).toEqual({
      main: { provider: 'deepseek' },
    })
  })

  const main = '[models.main]\nprovider = "openai"\n'
  test.each([
    [
      'a key',
      `${main}apiKey = "sk-1234"`,
      /^models\.main\.apiKey: keys are not allowed in the file; .*models\.main\.keyVariable/,
    ],
    [
      'a key in place of its variable',
      `${main}keyVariable = "sk-1234"`,
      /^models\.main\.keyVariable: got a value that is not shown; .*never the key itself/,
    ],
    [
      'a key in a header',
      `${main}headers = { Authorization = "Bearer sk-1234" }`,
      /^models\.main\.headers\.Authorization: keys are not allowed in the file/,
    ],
    [
      'a mistyped setting',
      `${main}fallback = []`,
      /^models\.main\.fallback: unknown setting; did you mean fallbacks\?/,
    ],
    [
      'a mistyped setting in a nested table',
      `${main}timeouts = { idel = "1s" }`,
      /^models\.main\.timeouts\.idel: unknown setting; did you mean idle\?/,
    ],
    ['no provider', '[models.main]\nmodel = "x"', /^models\.main\.provider: missing; allowed: a provider/],
    [
      'a mistyped provider',
      '[models.main]\nprovider = "opnai"',
      /^models\.main: Unknown provider "opnai"; did you mean openai\?/,
    ],
    [
      'an invalid duration',
      `${main}timeouts = { idle = "soon" }`,
      /^models\.main\.timeouts\.idle: got "soon"; allowed: a duration/,
    ],
    [
      'a fallback that does not exist',
      `${main}fallbacks = ["mian"]`,
      /^models\.main\.fallbacks: unknown model "mian"; did you mean "main"\?/,
    ],
    [
      'a fallback with weight 0',
      `${main}fallbacks = [{ model = "main", weight = 0 }]`,
      /^models\.main\.fallbacks\.0.*: got .*; allowed: a list of names/,
    ],
    ['a fallback to itself', `${main}fallbacks = ["main"]`, /a model cannot be its own fallback/],
    [
      'an alias of an unknown model',
      `${main}[models.aliases]\nfast = "mian"`,
      /^models\.aliases\.fast: unknown model "mian"; did you mean "main"\?/,
    ],
    [
      'a value in place of a table',
      '[models]\nmain = "openai:gpt-5"',
      /^models\.main: got "openai:gpt-5"; allowed: a table/,
    ],
  ])('%s is rejected, and the error names its key', async (_, toml, message) => {
    const problems = await problemsOf(load(toml))
    expect(problems).toEqual([expect.stringMatching(message)])
    expect(problems.join()).not.toContain('sk-1234')
  })
})

describe('sources', () => {
  test('without any source, the defaults apply and the profile is local', async () => {
    expect(await loadConfig({ environment: {} })).toMatchObject({
      profile: 'local',
      models: {},
      server: {
        host: '127.0.0.1',
        port: 8080,
        heartbeatMs: 15_000,
        onDisconnect: 'stop',
        disconnectGraceMs: 5_000,
        maxBodyBytes: 2_097_152,
      },
      store: { path: '.oxbow/oxbow.db' },
      agent: {
        maxSteps: 10,
        totalTimeoutMs: 600_000,
        idleTimeoutMs: 120_000,
        stateTimeoutsMs: { CREATED: 3_600_000, WAITING_USER: 2_592_000_000 },
        compaction: { trigger: 30, keep: 10, threshold: 0.6, model: undefined },
        temperature: undefined,
      },
      identity: { mode: 'none' },
    })
  })

  test('B7: the time limit of each state of a turn is a setting', async () => {
    const toml = '[agent.stateTimeouts]\nrunning = "5m"\nwaitingTool = "1m"\nwaitingUser = "2h"'
    const { agent } = await load(toml, { OXBOW_AGENT_STATE_TIMEOUTS_CREATED: '90s' })
    expect(agent.stateTimeoutsMs).toEqual({
      CREATED: 90_000,
      RUNNING: 300_000,
      WAITING_TOOL: 60_000,
      WAITING_USER: 7_200_000,
    })
  })

  test('the command line overrides the environment, then come the file and the defaults', async () => {
    const toml = '[server]\nport = 1001\nheartbeat = "20s"\nhost = "localhost"'
    const config = await load(
      toml,
      { OXBOW_SERVER_PORT: '1002', OXBOW_SERVER_HEARTBEAT: '1m30s' },
      { server: { port: 1003 } },
    )
    expect(config.server).toMatchObject({ port: 1003, heartbeatMs: 90_000, host: 'localhost' })
  })

  test('a profile has its own defaults', async () => {
    expect(await loadConfig({ environment: { OXBOW_PROFILE: 'test' } })).toMatchObject({
      profile: 'test',
      server: { port: 0 },
      store: { path: ':memory:' },
    })
  })

  test('an empty variable counts as unset', async () => {
    expect(await load('model = "openai"', { OXBOW_MODEL: '', OXBOW_SERVER_PORT: '' })).toMatchObject({
      models: { default: 'openai' },
      server: { port: 8080 },
    })
  })

  test('variables in the file are substituted, and $${ is kept as ${', async () => {
    const config = await load('[agent]\ninstructions = "I am ${NAME}, not $${NAME}"', { NAME: 'Ox' })
    expect(config.agent.instructions).toBe('I am Ox, not ${NAME}')
  })

  test('overrides may be dotted, and undefined ones are ignored', async () => {
    const { server } = await load('', {}, { 'server.port': 5, server: { host: undefined, limits: { jsonDepth: 9 } } })
    expect(server).toMatchObject({ port: 5, host: '127.0.0.1', maxJsonDepth: 9 })
  })
})

describe('problems', () => {
  test('are all reported at once, each with its key, the value given and what is allowed', async () => {
    const problems = await problemsOf(
      load(
        '[server]\nport = "many"\nonDisconnect = "wait"\n[agent]\ntotalTimeout = 30\nmaxSteps = 0',
        { OXBOW_LOG_LEVEL: 'loud' },
        { server: { heartbeat: '1d' } },
      ),
    )
    expect(problems).toHaveLength(6)
    const all = problems.join('\n')
    expect(all).toMatch(/^server\.port: got "many" from .*oxbow\.toml; allowed: a whole number from 0 to 65535$/m)
    expect(all).toMatch(/^server\.onDisconnect: got "wait" .*allowed: "stop" or "continue"$/m)
    expect(all).toMatch(/^agent\.totalTimeout: got 30 .*allowed: a duration from "1s" to "24h"/m)
    expect(all).toMatch(/^agent\.maxSteps: got 0 /m)
    expect(all).toMatch(/^log\.level: got "loud" from the variable OXBOW_LOG_LEVEL; allowed: "trace" or/m)
    expect(all).toMatch(/^server\.heartbeat: got "1d" from the command line/m)
  })

  test('unknown keys and variables are reported with the nearest name', async () => {
    const problems = await problemsOf(
      load('[server]\nprot = 1\n[sever]\nport = 1', { OXBOW_SERVER_PROT: '1', OXBOW_SOMEBODY_ELSE: 'x' }),
    )
    expect(problems.join('\n')).toMatch(/^server\.prot: .*did you mean server\.port\?$/m)
    expect(problems.join('\n')).toMatch(/^sever: unknown setting.*did you mean server\?$/m)
    expect(problems.join('\n')).toMatch(/^OXBOW_SERVER_PROT: .*did you mean OXBOW_SERVER_PORT\?$/m)
    expect(problems).toHaveLength(3)
  })

  test('a section in place of a value, and a value in place of a section, are reported', async () => {
    const problems = await problemsOf(load('server = 5\n[model]\nname = "x"'))
    expect(problems.join('\n')).toMatch(/^server: is a section/m)
    expect(problems.join('\n')).toMatch(/^model: got /m)
  })

  test('a variable that the file refers to must exist', async () => {
    expect(await problemsOf(load('[agent]\ninstructions = "${NOWHERE}"'))).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^agent\.instructions: .*\$\{NOWHERE\}.*the environment variable NOWHERE is not set/),
      ]),
    )
  })

  test('values from a variable are not shown', async () => {
    const problems = await problemsOf(
      load('[server]\nhost = "localhost"\nonDisconnect = "${PASS}"', { PASS: 'hunter22' }),
    )
    expect(problems.join()).not.toContain('hunter22')
    expect(problems[0]).toMatch(/^server\.onDisconnect: got a value that is not shown/)
  })

  test('broken TOML and a missing file are reported', async () => {
    expect(await problemsOf(load('[server\nport'))).toEqual([
      expect.stringMatching(/oxbow\.toml: invalid TOML at line 1, column \d+: /),
    ])
    expect(await problemsOf(loadConfig({ environment: { OXBOW_CONFIG: join(folder, 'none.toml') } }))).toEqual([
      expect.stringMatching(/none\.toml: cannot be read/),
    ])
    expect(await problemsOf(loadConfig({ environment: { OXBOW_PROFILE: 'staging' } }))).toEqual([
      expect.stringMatching(/^OXBOW_PROFILE: got "staging"; allowed: local, test, prod$/),
    ])
  })
})

describe('Y16: production', () => {
  test('Y16: does not start without model, store and identity, and reports all three at once', async () => {
    const problems = await problemsOf(loadConfig({ environment: { OXBOW_PROFILE: 'prod' } }))
    expect(problems.map((it) => it.split(':')[0])).toEqual(['store.path', 'model', 'identity.mode'])
    expect(problems[2]).toMatch(/"api-keys", "jwt" or "introspection"/)
  })

  test('Y16: does not keep its sessions in memory only', async () => {
    const environment = { OXBOW_PROFILE: 'prod', OXBOW_STORE_PATH: ':memory:' }
    expect((await problemsOf(loadConfig({ environment }))).join('\n')).toMatch(/^store.path: .*store\.url/m)
  })

  test('Y16: does not start with a model whose key is missing', async () => {
    const environment = { OXBOW_PROFILE: 'prod', OXBOW_MODEL: 'openai:gpt-5', OXBOW_STORE_PATH: 'x.db' }
    expect((await problemsOf(loadConfig({ environment }))).join('\n')).toMatch(/^model: .*OPENAI_API_KEY/m)
    const complete = await problemsOf(loadConfig({ environment: { ...environment, OPENAI_API_KEY: 'sk-1234567890' } }))
    expect(complete.map((it) => it.split(':')[0])).toEqual(['identity.mode'])
  })
})

test('H14: a replica that only serves or only works needs a store that others share', async () => {
  for (const role of ['api', 'worker'])
    for (const path of [':memory:', 'x.db']) {
      const overrides = { server: { role }, store: { path } }
      expect(await problemsOf(loadConfig({ environment: {}, overrides }))).toEqual([
        expect.stringMatching(`^server.role: "${role}" needs a store .* Set store.url .*, or server.role to "all"$`),
      ])
    }
  const store = { url: 'postgres://oxbow@db/oxbow' }
  const { server } = await loadConfig({ environment: {}, overrides: { server: { role: 'api', maxTurns: 5 }, store } })
  expect(server).toMatchObject({ role: 'api', maxTurns: 5 })
})

describe('identity', () => {
  const of = (identity: Record<string, unknown>, environment: Record<string, string> = {}) =>
    loadConfig({ environment, overrides: { identity } })
  const jwksUrl = 'https://issuer.example/jwks.json'

  test('Y16: with model, store and identity, production starts', async () => {
    const environment = {
      OXBOW_PROFILE: 'prod',
      OXBOW_MODEL: 'openai:gpt-5',
      OPENAI_API_KEY: 'sk-1234567890',
      OXBOW_STORE_PATH: 'x.db',
      OXBOW_SERVER_HOST: '0.0.0.0',
      OXBOW_IDENTITY_MODE: 'jwt',
      OXBOW_IDENTITY_JWT_JWKS_URL: jwksUrl,
      OXBOW_IDENTITY_JWT_ISSUER: 'https://issuer.example',
      OXBOW_IDENTITY_JWT_AUDIENCE: 'oxbow',
      OXBOW_IDENTITY_JWT_ALGORITHMS: 'RS256, ES256',
    }
    const { identity, server } = await loadConfig({ environment })
    expect(identity).toMatchObject({ mode: 'jwt', key: { type: 'jwks', url: jwksUrl }, algorithms: ['RS256', 'ES256'] })
    expect(server.rateLimits).toEqual({
      requestsPerMinute: 600,
      concurrentTurns: 20,
      openStreams: 1_000,
      failedAuthenticationsPerMinute: 30,
    })
  })

  test.each<[Record<string, unknown>, RegExp]>([
    [{ mode: 'api-keys' }, /^identity\.keys: mode "api-keys" has no keys/],
    [{ mode: 'jwt' }, /^identity\.jwt: give exactly one of jwksUrl, publicKey and secret; none given/],
    [{ mode: 'jwt', jwt: { jwksUrl, secret: 'x'.repeat(40), issuer: 'i', audience: 'a' } }, /2 given/],
    [{ mode: 'jwt', jwt: { jwksUrl, issuer: 'i' } }, /^identity\.jwt\.audience: is required/],
    [{ mode: 'jwt', jwt: { secret: 'short' } }, /^identity\.jwt\.secret: shorter than 32 bytes/],
    [{ mode: 'introspection' }, /^identity\.introspection\.url: is required/],
    [{ mode: 'introspection', introspection: { url: 'https://h.example' } }, /^identity\.introspection\.fields\.user/],
    [{ mode: 'introspection', introspection: { preset: 'ruoyi', url: 'ftp://h' } }, /begins with http/],
    [{ mode: 'introspection', introspection: { preset: 'ruoyi', url: 'http://h', headers: [] } }, /nobody can sign in/],
    [{ mode: 'introspection', introspection: { preset: 'ruoyi', url: 'http://h', success: 'code' } }, /path=value/],
    [{ mode: 'introspection', introspection: { preset: 'ruoyi', url: 'http://h', headers: ['Host'] } }, /header names/],
    [{ mode: 'oauth' }, /^identity\.mode: got "oauth"/],
  ])('%j is reported', async (identity, message) => {
    expect((await problemsOf(of(identity))).join('\n')).toMatch(message)
  })

  test('a secret is not shown, whatever its source', async () => {
    const problems = await problemsOf(
      of({ mode: 'jwt', jwt: { secret: 5 } }, { OXBOW_IDENTITY_REFRESH_AUTHORIZATION: ' ' }),
    )
    expect(problems.join('\n')).toMatch(/^identity\.jwt\.secret: got a value that is not shown/m)
    expect(problems.join('\n')).toMatch(/^identity\.refresh\.authorization: got a value that is not shown/m)
  })

  test('origins are exact: wildcards and paths are rejected', async () => {
    for (const origin of ['*', 'https://*.example.com', 'https://app.example.com/path', 'app.example.com'])
      expect(
        (await problemsOf(loadConfig({ environment: {}, overrides: { 'server.cors.origins': [origin] } })))[0],
      ).toMatch(/^server\.cors\.origins: got /)
  })

  test('variables in the file are substituted inside lists and tables', async () => {
    const { identity } = await load('[identity]\nmode = "api-keys"\n[[identity.keys]]\nid = "${ID}"', {
      ID: '0123456789ab',
    })
    expect(identity).toMatchObject({ mode: 'api-keys', keys: [{ id: '0123456789ab' }] })
  })
})

test('every setting is documented with its variable, default and what is allowed', () => {
  const rows = describeConfig()
  expect(rows.length).toBeGreaterThan(20)
  expect(rows.find((it) => it.key === 'server.limits.bodyBytes')).toMatchObject({
    variable: 'OXBOW_SERVER_LIMITS_BODY_BYTES',
    default: 2_097_152,
    kind: 'number',
  })
  expect(rows.find((it) => it.key === 'store.path')?.inProfile).toEqual({ test: ':memory:', prod: undefined })
  for (const { key, description, allowed } of rows)
    expect([key, description.length > 10, allowed.length > 3]).toEqual([key, true, true])
})

test.each([
  ['500ms', 500],
  ['30s', 30_000],
  ['1m30s', 90_000],
  ['2h', 7_200_000],
  ['30', undefined],
  ['s', undefined],
  ['-1s', undefined],
  ['1.5s', undefined],
  ['', undefined],
])('the duration %j is %s ms', (text, ms) => {
  expect(parseDuration(text)).toBe(ms)
})

describe('common mistakes', () => {
  test('a misspelled variable is reported with the nearest name; variables of other programs are ignored', async () => {
    const environment = { OXBOW_SEVER_PORT: '9000', OXBOW_MODLE: 'offline', OXBOW_HOME: '/opt/oxbow' }
    expect(await problemsOf(loadConfig({ environment }))).toEqual([
      'OXBOW_SEVER_PORT: unknown variable; did you mean OXBOW_SERVER_PORT?',
      'OXBOW_MODLE: unknown variable; did you mean OXBOW_MODEL?',
    ])
  })

  test('an empty OXBOW_CONFIG counts as unset', async () => {
    expect((await loadConfig({ environment: { OXBOW_CONFIG: '' } })).profile).toBe('local')
  })

  test('an unset variable in a placeholder is reported once', async () => {
    expect(await problemsOf(load('model = "${NOPE}"'))).toEqual([expect.stringContaining('variable NOPE is not set')])
  })

  test('an API key in the file is rejected, and the error says where keys belong', async () => {
    expect(await problemsOf(load('openaiApiKey = "sk-1"'))).toEqual([expect.stringContaining('OPENAI_API_KEY')])
  })

  test('~/ of a path is the home directory', async () => {
    expect((await load('[store]\npath = "~/x.db"')).store.path).toBe(`${homedir()}/x.db`)
  })
})

describe('a variable that refers to another', () => {
  test('is substituted in a setting, and in the tables of OXBOW_MCP', async () => {
    const mcp = { docs: { url: 'https://docs.example/mcp', headers: { 'X-Team': 'team-${TEAM}' } } }
    const { agent, mcp: servers } = await load('', {
      TEAM: 'blue',
      OXBOW_AGENT_INSTRUCTIONS: 'You work for ${TEAM}.',
      OXBOW_MCP: JSON.stringify(mcp),
    })
    expect(agent.instructions).toBe('You work for blue.')
    expect(servers.docs).toMatchObject({ headers: { 'X-Team': 'team-blue' } })
  })

  test('that is unset fails the start, and the message names both', async () => {
    const [problem] = await problemsOf(load('', { OXBOW_AGENT_INSTRUCTIONS: 'You work for ${TEAM}.' }))
    expect(problem).toMatch(/agent\.instructions: the variable OXBOW_AGENT_INSTRUCTIONS refers to \$\{TEAM\}/)
  })
})

describe('B10: a store that replicas share', () => {
  const problemsOf = async (store: object, profile = 'prod') => {
    const environment = { OXBOW_PROFILE: profile, OPENAI_API_KEY: 'sk-test', OXBOW_CONFIG: '' }
    const overrides = { store, identity: { mode: 'api-keys', keysFile: 'keys.toml' } }
    return loadConfig({ environment, overrides }).then(
      ({ store: { url, hot } }) => ({ url, hot }),
      (error: Error) => error.message,
    )
  }
  const [database, server] = ['postgres://u:hunter2@db/oxbow', 'redis://:hunter2@cache']

  test('is a database, with Redis beside it or without', async () => {
    expect(await problemsOf({ url: database })).toEqual({ url: database, hot: undefined })
    expect(await problemsOf({ url: database, hot: server })).toEqual({ url: database, hot: server })
  })

  test('that can lose events needs a setting that accepts it in profile prod', async () => {
    expect(await problemsOf({ url: server })).toMatch(/store\.url: Redis alone can lose events/)
    expect(await problemsOf({ url: server, acceptLoss: true })).toEqual({ url: server, hot: undefined })
    expect(await problemsOf({ url: server }, 'local')).toEqual({ url: server, hot: undefined })
  })

  test('of Redis beside a file is refused, and no message shows a password', async () => {
    const message = await problemsOf({ path: 'a.db', hot: server })
    expect(message).toMatch(/store\.hot: Redis needs a durable store/)
    const wrong = await problemsOf({ url: 'mysql://u:hunter2@db' })
    expect(wrong).toMatch(/store\.url: got a value that is not shown|store\.url/)
    expect(`${message}${wrong}`).not.toContain('hunter2')
  })
})
