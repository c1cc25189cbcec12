import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { runInNewContext } from 'node:vm'
import { memory } from '@oxbow/backends'
import { offline } from '@oxbow/models'
import type { Reply } from '@oxbow/testing'
import fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import { assistant } from './agent.fixture.ts'
import type { DefaultAgentOptions } from './agent.ts'
import { calculate } from './calculate.ts'
import { describeTime } from './time.ts'

describe('Y10: calculate', () => {
  test.each([
    ['1 + 2 * 3', 7],
    ['(1 + 2) * 3', 9],
    ['-2^2', -4],
    ['2^3^2', 512],
    ['2 ** 10', 1024],
    ['7 % 4', 3],
    ['1.5e3 / 2', 750],
    ['sqrt(16) + max(1, 2, 3) - abs(-4)', 3],
    ['6 × 7 ÷ 2', 21],
    ['--3', 3],
    ['.5 + 1.', 1.5],
    ['2 * pi', 2 * Math.PI],
  ])('%s is %d', (expression, value) => {
    expect(calculate(expression).value).toBeCloseTo(value, 12)
  })

  test.each([
    ['1 / 0', 'division by zero'],
    ['1 % 0', 'division by zero'],
    ['', 'ends too early'],
    ['1 +', 'ends too early'],
    ['1 2', 'unexpected 2'],
    ['process.exit()', 'unexpected "."'],
    ['exit(1)', 'unknown name exit'],
    ['constructor', 'unknown name constructor'],
    ['__proto__', 'unexpected "_"'],
    ['1; 2', 'unexpected ";"'],
    ['sqrt(-1)', 'not a real number'],
    ['10^400', 'too large'],
    ['sqrt(1, 2)', 'takes one number'],
    [`${'('.repeat(60)}1${')'.repeat(60)}`, 'nested deeper'],
    [`${'-'.repeat(100)}1`, 'nested deeper'],
    [`${'1+'.repeat(300)}1`, 'longer than'],
  ])('%s is refused: %s', (expression, why) => {
    expect(() => calculate(expression)).toThrow(why)
  })

  test('agrees with JavaScript', () => {
    const expression = fc.letrec((tie) => ({
      value: fc.oneof(
        { depthSize: 'small' },
        fc.integer({ min: 0, max: 99 }).map(String),
        fc.tuple(tie('value'), fc.constantFrom('+', '-', '*'), tie('value')).map((it) => `(${it.join(' ')})`),
      ),
    })).value as fc.Arbitrary<string>
    fc.assert(
      fc.property(expression, (text) => {
        fc.pre(text.length < 400 && (text.match(/\(/g)?.length ?? 0) < 20)
        expect(calculate(text).value).toBe(runInNewContext(text))
      }),
    )
  })
})

test('Y10: the time is given in a time zone, and an unknown zone is an error with an example', () => {
  const now = new Date('2026-03-01T00:30:00Z')
  expect(describeTime(now, 'Asia/Shanghai')).toBe('Sunday, 1 March 2026 at 08:30:00 GMT+08:00 (Asia/Shanghai)')
  expect(describeTime(now, 'America/New_York')).toContain('Saturday, 28 February 2026 at 19:30:00')
  expect(() => describeTime(now, 'Mars/Base')).toThrow('Asia/Shanghai')
  // CST means Shanghai, Chicago or Havana.
  expect(() => describeTime(now, 'CST')).toThrow('ambiguous time zone: "CST"')
})

describe('the default agent', () => {
  const ask = async (scripts: Record<string, Reply[]>, user: string, options: Partial<DefaultAgentOptions> = {}) => {
    const { engine, server } = await assistant(scripts, options)
    await engine.session({ user }).run('Go.')
    return server.requests
      .at(-1)!
      .messages.filter((it) => it.role === 'tool')
      .map((it) => String(it.content))
  }
  const calling = (name: string, args: object) => ({ '*': [{ calls: [{ name, arguments: args }] }, { text: 'ok' }] })

  test('Y10: the time is the user’s, unless the model names a zone', async () => {
    const here = { timeZone: 'Asia/Kolkata' }
    expect((await ask(calling('get_current_time', {}), 'ann', here))[0]).toContain('GMT+05:30 (Asia/Kolkata)')
    const [there] = await ask(calling('get_current_time', { timeZone: 'Asia/Tokyo' }), 'ann', here)
    expect(there).toContain('GMT+09:00 (Asia/Tokyo)')
    expect((await ask(calling('get_current_time', {}), 'ann'))[0]).toContain('(UTC)')
  })

  test.each([
    ['1 / 3', '1 / 3 = 0.333333333333333 (rounded to 15 digits)'],
    ['9007199254740993 - 1', '9007199254740993 - 1 = 9007199254740991 (rounded to 15 digits)'],
    ['99999999999 * 99999999999', '99999999999 * 99999999999 = 9.9999999998e+21 (rounded to 15 digits)'],
    ['0.1 + 0.2', '0.1 + 0.2 = 0.3'],
    ['1234567890123456 + 1', '1234567890123456 + 1 = 1234567890123457'],
    ['7 / 4', '7 / 4 = 1.75'],
  ])('Y10: calculate reports rounding: %s', async (expression, result) => {
    expect(await ask(calling('calculate', { expression }), 'ann')).toEqual([result])
  })

  test('Y10: keeps notes per user across sessions, newest first', async () => {
    const backend = memory()
    expect(await ask(calling('save_note', { text: 'buy milk' }), 'ann', { backend })).toEqual(['Saved.'])
    await ask(calling('save_note', { text: 'call Bob' }), 'ann', { backend })
    const [mine] = await ask(calling('list_my_notes', {}), 'ann', { backend })
    expect(mine).toMatch(/call Bob[\s\S]*buy milk|buy milk[\s\S]*call Bob/)
    expect(await ask(calling('list_my_notes', {}), 'ben', { backend })).toEqual(['There are no notes yet.'])
    expect((await ask(calling('save_note', { text: 'x', user: 'ann' }), 'ben', { backend }))[0]).toContain('Not run')
  })

  test('Y10: reports the weather, an unknown place, or an unreachable service', async () => {
    const server = createServer((request, response) => {
      const url = new URL(request.url ?? '/', 'http://localhost')
      if (url.pathname === '/geo') {
        const found = url.searchParams.get('name') === 'Beijing'
        const place = { name: 'Beijing', country: 'China', latitude: 39.9, longitude: 116.4 }
        response.end(JSON.stringify(found ? { results: [place] } : {}))
      } else if (url.searchParams.get('latitude') === '39.9')
        response.end(
          '{"current":{"temperature_2m":21.5,"relative_humidity_2m":40,"weather_code":0,"wind_speed_10m":9}}',
        )
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const weather = { geocodingUrl: `${base}/geo`, forecastUrl: `${base}/now` }
    expect(await ask(calling('get_weather', { city: 'Beijing' }), 'ann', { weather })).toEqual([
      'Beijing, China: clear sky, 21.5 °C, humidity 40 %, wind 9 km/h.',
    ])
    expect(await ask(calling('get_weather', { city: 'Nowhere' }), 'ann', { weather })).toEqual([
      'No place named "Nowhere" was found.',
    ])
    const gone = { geocodingUrl: 'http://127.0.0.1:9/geo', forecastUrl: 'http://127.0.0.1:9/now' }
    expect(await ask(calling('get_weather', { city: 'Beijing' }), 'ann', { weather: gone })).toEqual([
      'Error: the weather service cannot be reached from here',
    ])
  })

  test('Y10: retrieves passages about Oxbow itself, with their ids', async () => {
    const [found] = await ask(calling('retrieve', { query: 'Which tools does the default agent have?' }), 'ann')
    expect(found).toMatch(/\[tools-and-safety\.md#[0-9a-f]{12}\]\n# Which tools/)
  })

  test('answers without a key and identifies itself as a stub', async () => {
    const { engine } = await assistant({}, { model: offline() })
    const result = await engine.session({ user: 'ann' }).run('What is (17 + 3) * 2?')
    expect(result.text).toContain('40')
    expect(result.text).toContain('offline stub')
  })
})
