import type { Message, ModelRequest, ToolSpec } from '@oxbow/core'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ask, askInVain, calls, text } from '../asking.fixture.ts'
import { offline } from '../index.ts'

const tool = (name: string, description: string, properties: object, required = Object.keys(properties)): ToolSpec => ({
  name,
  description,
  input: { type: 'object', properties, required },
})
const string = { type: 'string' }
const number = { type: 'number' }
const tools = [
  tool('get_weather', 'The current weather of a city', { city: string, unit: { enum: ['celsius', 'fahrenheit'] } }, [
    'city',
  ]),
  tool('calculator', 'Evaluates an arithmetic expression', { expression: string }),
  tool('current_time', 'The current time in a time zone', { timezone: string }, []),
  tool('web_search', 'Searches the web', { query: string }),
  tool('add', 'Adds two numbers', { a: number, b: number }),
  tool('read_file', 'Reads a file of the workspace', { path: string }),
  tool('delete_file', 'Deletes a file of the workspace', { path: string }),
  tool('refund_order', 'Pays an order back', { order_id: string, amount: number }, ['order_id']),
  tool('send_email', 'Sends an email', { to: string, subject: string, body: string }),
]

const user = (value: string): Message => ({ id: 'u', role: 'user', blocks: [{ type: 'text', text: value }] })
const asked = async (question: string, overrides: Partial<ModelRequest> = {}) =>
  (await ask(offline(), { messages: [user(question)], tools, ...overrides })).reply

test('its id is offline:offline', () => {
  expect(offline().id).toBe('offline:offline')
})

describe('it picks tools by the words of the question', () => {
  test.each<[string, ...[string, object][]]>([
    ["What's the weather in Paris?", ['get_weather', { city: 'Paris' }]],
    ['weather in New York in celsius', ['get_weather', { city: 'New York', unit: 'celsius' }]],
    ['What is the weather in berlin?', ['get_weather', { city: 'berlin' }]],
    ['What is 2 + 3 * 4?', ['calculator', { expression: '2 + 3 * 4' }]],
    ['what is 12 times 7', ['calculator', { expression: '12 * 7' }]],
    ['what is 2 plus 3', ['calculator', { expression: '2 + 3' }]],
    ['How much is 15% of 80?', ['calculator', { expression: '15/100* 80' }]],
    ['add 3 and 4', ['add', { a: 3, b: 4 }]],
    ['What time is it in Tokyo?', ['current_time', { timezone: 'Asia/Tokyo' }]],
    ['What time is it in UTC?', ['current_time', { timezone: 'UTC' }]],
    ['Search the web for red boats.', ['web_search', { query: 'red boats' }]],
    ['Search "blue whales" on the web', ['web_search', { query: 'blue whales' }]],
    ['read the file notes/today.md', ['read_file', { path: 'notes/today.md' }]],
    ['Refund order A-1042', ['refund_order', { order_id: 'A-1042' }]],
    [
      'send an email to bob@example.com with "Hi" and "See you"',
      ['send_email', { to: 'bob@example.com', subject: 'Hi', body: 'See you' }],
    ],
    ['北京今天天气怎么样？', ['get_weather', { city: '北京' }]],
    ['上海现在几点了', ['current_time', { timezone: 'Asia/Shanghai' }]],
    ['计算 12 乘以 8', ['calculator', { expression: '12 * 8' }]],
    ['12加30等于多少？', ['calculator', { expression: '12+30' }]],
    ['帮我搜索 量子计算', ['web_search', { query: '量子计算' }]],
    [
      'Please calculate (1+2)*3 and tell me the weather in Berlin',
      ['calculator', { expression: '(1+2)*3' }],
      ['get_weather', { city: 'Berlin' }],
    ],
    [
      'weather and time in New York?',
      ['get_weather', { city: 'New York' }],
      ['current_time', { timezone: 'America/New_York' }],
    ],
  ])('%s', async (question, ...expected) => {
    const reply = await asked(question)
    expect(calls(reply).map(([name, args]) => [name, JSON.parse(args)])).toEqual(expected)
    expect(reply.finishReason).toBe('calls')
  })

  test.each(['hello', 'tell me a joke about the weather', 'What is the capital of France?', '你好'])(
    'picks none for %j',
    async (question) => {
      expect(calls(await asked(question))).toEqual([])
    },
  )

  test('Chinese descriptions are matched by their words', async () => {
    const stock = tool('gupiao', '查询股票价格', { symbol: string })
    expect(calls(await asked('请查一下股票价格 "600519"', { tools: [stock] }))).toEqual([
      ['gupiao', '{"symbol":"600519"}'],
    ])
  })

  test('the same question gives the same calls', async () => {
    expect(await asked("What's the weather in Paris?")).toEqual(await asked("What's the weather in Paris?"))
  })

  test('the caller’s tool choice is obeyed: none, one tool, any tool', async () => {
    expect(calls(await asked("What's the weather in Paris?", { toolChoice: 'none' }))).toEqual([])
    expect(calls(await asked('hello', { toolChoice: { tool: 'add' } }))[0]![0]).toBe('add')
    expect(calls(await asked('hello', { toolChoice: 'required' }))).toHaveLength(1)
  })

  test('any question and any tools give calls whose arguments are JSON objects', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.string({ unit: 'grapheme' }),
        fc.constantFrom('auto', 'required' as const),
        async (question, toolChoice) => {
          const reply = await asked(`weather ${question}`, { toolChoice: toolChoice as 'auto' })
          for (const [, args] of calls(reply)) expect(JSON.parse(args)).toBeTypeOf('object')
        },
      ),
      { numRuns: 200 },
    )
  })
})

describe('it answers from tool results', () => {
  const question = 'What is the weather in Paris, and what is 2 + 2?'
  const turn = (...results: { status: 'success' | 'error' | 'denied'; text: string }[]): Message[] => [
    user(question),
    {
      id: 'a',
      role: 'assistant',
      blocks: results.map((_, i) => ({ type: 'call', callId: `c${i}`, tool: tools[i]!.name, arguments: '{}' })),
    },
    {
      id: 't',
      role: 'tool',
      blocks: results.map(({ status, text: value }, i) => ({
        type: 'result',
        callId: `c${i}`,
        tool: tools[i]!.name,
        status,
        content: [{ type: 'text', text: value }],
      })),
    },
  ]
  const answer = async (messages: Message[]) => (await ask(offline(), { messages, tools })).reply

  test('in plain sentences, without calling a tool again', async () => {
    const reply = await answer(turn({ status: 'success', text: 'Sunny, 21 °C' }, { status: 'success', text: '4' }))
    expect(calls(reply)).toEqual([])
    expect(text(reply)).toContain('Result of get_weather: Sunny, 21 °C. Result of calculator: 4.')
    expect(text(reply)).toMatch(/not (by )?a language model/)
    expect(reply.finishReason).toBe('stop')
  })

  test('and reports a tool that did not succeed', async () => {
    const reply = await answer(turn({ status: 'denied', text: 'not allowed' }))
    expect(calls(reply)).toEqual([])
    expect(text(reply)).toContain('get_weather did not succeed: not allowed.')
  })

  test('a call whose result is missing is not made again', async () => {
    expect(calls(await answer(turn({ status: 'success', text: 'x' }).slice(0, 2)))).toEqual([])
  })

  test('the next question is a new one', async () => {
    const history = [...turn({ status: 'success', text: 'Sunny' }), user('And the weather in Rome?')]
    expect(calls(await answer(history))).toEqual([['get_weather', '{"city":"Rome"}']])
  })

  test('in Chinese for a Chinese question', async () => {
    const [, ...rest] = turn({ status: 'success', text: '晴' })
    expect(text(await answer([user('北京天气'), ...rest]))).toMatch(
      /^工具 get_weather 的结果：晴。（.*不是语言模型。）$/,
    )
  })
})

describe('without a matching tool', () => {
  test('it states what it is, which tools there are, and how to configure a model', async () => {
    const said = text(await asked('hello'))
    expect(said).toContain("I am Oxbow's offline stub")
    expect(said).toMatch(/not (by )?a language model/)
    expect(said).toContain('- get_weather: The current weather of a city\n')
    expect(said).toContain('- and 1 more')
    expect(said).toContain('OXBOW_MODEL=openai:')
    expect(said).toContain('OPENAI_API_KEY')
    expect(text(await asked('hello', { tools: [] }))).toContain('There are no tools here.')
  })

  test('in Chinese too', async () => {
    expect(text(await asked('你好'))).toMatch(/离线模型[\s\S]*OXBOW_MODEL/)
  })
})

describe('structured output', () => {
  const filled = async (schema: Record<string, unknown>): Promise<unknown> =>
    JSON.parse(text(await asked('hello, 4 of them', { tools: [], output: { name: 'answer', schema } })))
  const object = (properties: Record<string, object>, required = Object.keys(properties), more: object = {}) => ({
    type: 'object',
    properties,
    required,
    ...more,
  })

  test('required fields are filled by their type, the others left out', async () => {
    const schema = object({ name: string, count: number, ok: { type: 'boolean' }, note: string }, [
      'name',
      'count',
      'ok',
    ])
    expect(await filled(schema)).toEqual({ name: 'hello, 4 of them', count: 4, ok: false })
  })

  test('an enumeration yields its first value, a constant and a default yield themselves', async () => {
    const schema = object({ mood: { enum: ['good', 'bad'] }, id: { const: 7 }, size: { type: 'string', default: 'L' } })
    expect(await filled(schema)).toEqual({ mood: 'good', id: 7, size: 'L' })
  })

  test('limits and formats are respected', async () => {
    const schema = object({
      when: { type: 'string', format: 'date-time' },
      short: { type: 'string', maxLength: 3 },
      long: { type: 'string', minLength: 20 },
      least: { type: 'integer', minimum: 9, maximum: 12 },
      most: { type: 'number', maximum: 2 },
      many: { type: 'integer', multipleOf: 7, exclusiveMinimum: 8 },
      items: { type: 'array', minItems: 2, items: { type: 'integer' } },
    })
    expect(await filled(schema)).toEqual({
      when: '1970-01-01T00:00:00Z',
      short: 'hel',
      long: 'hello, 4 of them....',
      least: 9,
      most: 2,
      many: 21,
      items: [4, 4],
    })
  })

  test('references, alternatives and lists of types are followed', async () => {
    const schema = object(
      {
        a: { $ref: '#/$defs/n' },
        b: { anyOf: [{ type: 'null' }, { $ref: '#/$defs/n' }] },
        c: { type: ['null', 'string'] },
      },
      undefined,
      {
        $defs: { n: object({ n: { type: 'integer' } }) },
      },
    )
    expect(await filled(schema)).toEqual({ a: { n: 4 }, b: { n: 4 }, c: 'hello, 4 of them' })
    expect(await filled({ type: 'array', items: string })).toEqual([])
  })

  test('a recursive schema terminates', async () => {
    const schema = {
      $ref: '#/$defs/node',
      $defs: { node: { type: 'object', properties: { next: { $ref: '#/$defs/node' } }, required: ['next'] } },
    }
    expect(text(await asked('hi', { tools: [], output: { name: 'a', schema } }))).toMatch(/^\{"next":/)
  })
})

describe('the stream', () => {
  test('streams word by word, one per turn of the event loop', async () => {
    let turns = 0
    let running = true
    const count = () => {
      turns++
      if (running) setImmediate(count)
    }
    count()
    const { deltas } = await ask(offline(), { messages: [user('hello')], tools })
    running = false
    expect(deltas.length).toBeGreaterThan(40)
    expect(turns).toBeGreaterThan(deltas.length / 2)
  })

  test('can be cancelled while it streams, and keeps the partial answer', async () => {
    const controller = new AbortController()
    const seen: string[] = []
    const answer = offline().generate(
      { system: '', messages: [user('hello')], tools: [] },
      {
        signal: controller.signal,
        onDelta: (delta) => {
          if (delta.type === 'text') seen.push(delta.text)
          if (seen.length === 3) controller.abort()
        },
      },
    )
    await expect(answer).rejects.toMatchObject({
      code: 'cancelled',
      partial: { blocks: [{ type: 'text', text: 'Hello! I am' }], finishReason: 'cancelled' },
    })
    expect((await askInVain(offline(), {}, AbortSignal.abort())).error.code).toBe('cancelled')
  })

  test('has an estimated usage', async () => {
    expect((await asked('hello')).usage).toMatchObject({ estimated: true, inputTokens: expect.any(Number) })
  })
})

test('an unknown question is searched in the knowledge base, if there is one', async () => {
  const retrieve: ToolSpec = {
    name: 'retrieve',
    description: 'Searches the knowledge base.',
    input: { type: 'object', properties: { query: { type: 'string' } }, required: ['query'] },
  }
  const reply = await offline().generate(
    {
      system: '',
      messages: [{ id: '1', role: 'user', blocks: [{ type: 'text', text: 'What is a session?' }] }],
      tools: [retrieve],
    },
    { signal: AbortSignal.timeout(5_000), onDelta: () => {} },
  )
  expect(reply.blocks).toEqual([
    { type: 'call', callId: '', tool: 'retrieve', arguments: '{"query":"What is a session"}' },
  ])
})

test('of two tools that share a word the one whose whole name matches is picked', async () => {
  const tools = ['save_note', 'list_my_notes'].map((name): ToolSpec => {
    const save = name === 'save_note'
    return {
      name,
      description: save ? 'Saves a note, so that it can be listed.' : 'Lists the notes.',
      input: { type: 'object', properties: save ? { text: { type: 'string' } } : {}, required: save ? ['text'] : [] },
    }
  })
  const reply = await offline().generate(
    { system: '', messages: [{ id: '1', role: 'user', blocks: [{ type: 'text', text: 'List my notes' }] }], tools },
    { signal: AbortSignal.timeout(5_000), onDelta: () => {} },
  )
  expect(reply.blocks).toMatchObject([{ tool: 'list_my_notes' }])
})

describe('with the tools of the default agent', () => {
  const helpers = { enum: ['summarizer', 'kb-researcher'], type: 'string' }
  const own = [
    tool('session_search', 'Searches what was said in this session.', { query: string }),
    tool('agent_list', 'Lists the agents that were started.', {}),
    tool('agent_spawn', 'Gives a task to an agent.\n- kb-researcher: Looks things up.', {
      agent: helpers,
      task: string,
    }),
    tool('retrieve', 'Searches the knowledge base.', { query: string }),
  ]
  const picked = async (question: string) =>
    calls(await asked(question, { tools: own })).map(([name, given]) => [name, JSON.parse(given)])

  test('an agent named in the question gets the task', async () => {
    expect(await picked('Ask the kb-researcher: what is a turn?')).toEqual([
      ['agent_spawn', { agent: 'kb-researcher', task: 'what is a turn' }],
    ])
  })

  test('questions about sessions and agents go to the knowledge base', async () => {
    expect(await picked('How long do sessions last?')).toMatchObject([['retrieve', {}]])
    expect(await picked('What can the default agent do?')).toMatchObject([['retrieve', {}]])
  })
})
