import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type Place, place, scripted, terminal } from './cli.fixture.ts'

const configure = ({ directory }: Place, toml: string): void => writeFileSync(join(directory, 'oxbow.toml'), toml)

/** Two models at a scripted server, which refuses the first. */
async function two(): Promise<{ at: Place; env: Record<string, string> }> {
  const { server } = await scripted({
    scripts: {
      '*': (request) =>
        request.body.model === 'locked'
          ? { status: 401, body: { error: { message: 'no' } } }
          : { text: 'hello from the spare' },
    },
  })
  const at = place()
  configure(
    at,
    `[models.aliases]
default = "main"
fast = "spare"
[models.main]
provider = "deepseek"
model = "locked"
keyVariable = "TEAM_KEY"
baseUrl = "${server.url}"
fallbacks = ["spare"]
[models.spare]
provider = "vllm"
model = "open"
baseUrl = "${server.url}"
contextWindow = 32000
price = { input = 1, output = 2 }`,
  )
  return { at, env: { TEAM_KEY: 'sk-secret-1' } }
}

describe('oxbow models list', () => {
  test('shows names, aliases, keys, prices, windows and fallbacks', async () => {
    const { at, env } = await two()
    const { code, stdout } = await at.run(['models', 'list', '--json'], { env })
    expect(code).toBe(0)
    const rows = stdout
      .trim()
      .split('\n')
      .map((it) => JSON.parse(it))
    expect(rows).toMatchObject([
      {
        name: 'main',
        model: 'deepseek:locked',
        aliases: ['default'],
        key: { variable: 'TEAM_KEY', present: true },
        fallbacks: [{ model: 'spare', weight: 1 }],
      },
      { name: 'spare', aliases: ['fast'], contextWindow: 32_000, price: { input: 1, output: 2 } },
    ])
    expect(stdout).not.toContain('sk-secret-1')
    expect((await at.run(['models', 'list'], { env: {} })).stdout).toMatch(
      /^main \[default\]\n {2}deepseek:locked · http.* · key TEAM_KEY \(missing\) · price unknown · .* · else spare\n/,
    )
  })

  test('shows the model of the environment without a configuration', async () => {
    expect((await place().run(['models', 'list'])).stdout).toMatch(/^offline:offline \[default\]/)
    const { stdout } = await place().run(['models', 'list'], { env: { OPENAI_API_KEY: 'k' } })
    expect(stdout).toMatch(/^openai:gpt-5-mini \[default\]\n.*\$\d.* in, \$\d.* out per million tokens · window \d+/)
  })
})

describe('oxbow models test', () => {
  test('exits with 0 when the model works, even when it only supports text', async () => {
    const { at, env } = await two()
    const { code, stdout } = await at.run(['models', 'test', 'fast'], { env })
    expect(stdout).toMatch(/✓ answer +first words after \d+ ms/)
    expect(stdout).toMatch(/! tool call/)
    expect(code).toBe(0)
  })

  test('exits with 3 and reports what to do when the provider refuses', async () => {
    const { at, env } = await two()
    const { code, stdout } = await at.run(['models', 'test'], { env })
    expect(stdout).toMatch(/✗ answer .*refused the API key \(HTTP 401\).*\n +key: The key in TEAM_KEY/)
    expect(code).toBe(3)
    const { stdout: json } = await at.run(['models', 'test', '--json'], { env })
    expect(JSON.parse(json.split('\n')[0]!)).toMatchObject({
      name: 'answer',
      result: 'failed',
      diagnosis: { fault: 'key' },
    })
  })

  test('exits with 2 when the key is missing or the name is unknown', async () => {
    const { at, env } = await two()
    const missing = await at.run(['models', 'test'])
    expect(missing).toMatchObject({ code: 2, stderr: expect.stringMatching(/needs an API key\. Set TEAM_KEY/) })
    const unknown = await at.run(['models', 'test', 'spar'], { env })
    expect(unknown).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/Unknown model "spar"; did you mean spare\?/),
    })
  })

  test('uses the environment’s proxy, and reports when it fails', async () => {
    const { server } = await scripted({ scripts: { '*': { always: { text: 'ready' } } } })
    const asked: string[] = []
    const proxy = createServer()
    proxy.on('connect', ({ url = '' }, socket) => {
      asked.push(url)
      const { port } = new URL(server.url)
      const there = connect(Number(port), '127.0.0.1', () => {
        socket.write('HTTP/1.1 200 OK\r\n\r\n')
        there.pipe(socket).pipe(there)
      })
      there.on('error', () => socket.destroy())
      socket.on('error', () => there.destroy())
    })
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void proxy.close())
    const through = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
    const env = { OXBOW_MODEL: 'vllm:m', VLLM_BASE_URL: 'http://model.invalid/v1', HTTP_PROXY: through }
    const works = await place().run(['models', 'test'], { env })
    expect(works.stdout).toContain(`through ${through}`)
    expect(works.stdout).toMatch(/✓ answer/)
    expect(asked[0]).toBe('model.invalid:80')
    const past = await place().run(['models', 'test'], { env: { ...env, NO_PROXY: 'model.invalid' } })
    expect(past.stdout).toMatch(/dns: The host of/)
    const broken = await place().run(['models', 'test'], { env: { ...env, HTTP_PROXY: 'http://127.0.0.1:19' } })
    expect(broken.stdout).toMatch(/proxy: The proxy http:\/\/127\.0\.0\.1:19/)
  })
})

test('the default agent uses the default model, and its fallback when that is refused', async () => {
  const { at, env } = await two()
  const { code, stdout } = await at.run(['run', '-p', 'hi'], { env })
  expect({ code, stdout }).toEqual({ code: 0, stdout: 'hello from the spare\n' })
  const named = await at.run(['run', '-p', 'hi', '--model', 'fast'], { env })
  expect(named.stdout).toBe('hello from the spare\n')
})

test('oxbow serve names the model and its fallback', async () => {
  const { at, env } = await two()
  const command = at.start(['serve', '--port', '0'], { env })
  const line = /model {3}main \(deepseek:locked\), else spare/
  await command.shows(line)
  expect(command.output()).toMatch(line)
  command.inner('SIGTERM')
  await command.ended
})

test('X6: oxbow chat shows the usage of context, turn and session after each turn; /usage shows details', async () => {
  const { at, env } = await two()
  const chat = terminal(at, ['chat'], env)
  await chat.shows('> ')
  chat.type('hi\r')
  await chat.shows('hello from the spare')
  await chat.shows('context 14 · turn 14 tokens $0.000018 · session 14 tokens $0.000018')
  await chat.shows('> ')
  chat.type('/usage\r')
  await expect(chat.shows('session     10           0         0       4         0  $0.000018')).resolves.toBeUndefined()
  chat.type('/exit\r')
  await chat.closed
})
