import { memory } from '@oxbow/backends'
import { describe, expect, test } from 'vitest'
import { bench, echo } from '../core.fixture.ts'
import { agent, createEngine, externalTool, needsApproval, rowFilter, slot, tool } from '../index.ts'

const model = { id: 'm', generate: async () => ({}) }
const base = { name: 't', description: 'Does it.', effects: ['write'], input: {}, run: () => '' }
const helper = { name: 'helper', model, instructions: 'Help.' }
const whole = agent(helper as never)

describe('a definition with a field that does not exist, or a value that does not fit, names the field:', () => {
  test.each<[object, string]>([
    [{ approval: 'allways' }, 'approval must be "always"; got "allways"'],
    [{ approval: true }, 'approval must be "always"; got true'],
    [{ aprover: 'a:b' }, 'unknown field "aprover". Did you mean "approver"?'],
    [{ approver: 5 }, 'approver must be a permission id'],
    [{ permission: '' }, 'permission must be a permission id'],
    [{ permission: 'biz: order' }, 'permission must be a permission id'],
    [{ edits: 'yes' }, 'edits must be true or false'],
    [{ check: 'deny' }, 'check must be a function'],
    [{ matches: {} }, 'matches must be a function'],
    [{ idempotent: 'no' }, 'idempotent must be'],
    [{ retries: 1.5 }, 'retries must be a whole number'],
    [{ timeoutMs: '5s' }, 'timeoutMs must be a number above 0'],
    [{ timeout: 5 }, 'unknown field "timeout". Did you mean "timeoutMs"?'],
    [{ output: 'text' }, 'output must be a schema'],
    [{ secrets: 'password' }, 'secrets must be a list'],
    [{ tests: [{ name: 'a', inputs: {}, expect: 1 }] }, 'tests[0].inputs". Did you mean "tests[0].input"?'],
  ])('tool %j', (more, message) => {
    const invalid = expect.objectContaining({ code: 'tool_invalid', message: expect.stringContaining(message) })
    expect(() => tool({ ...base, ...more } as never)).toThrow(invalid)
  })

  test('a secret is one of the arguments, or the audit log would hold it', () => {
    const input = { type: 'object', properties: { password: { type: 'string' } } }
    const made = (secrets: string[], schema: object = input) => tool({ ...base, input: schema, secrets } as never)
    expect(made(['password']).secrets).toEqual(['password'])
    expect(() => made(['pasword'])).toThrow('secrets names pasword, which is none of its arguments (password)')
    expect(made(['anything'], { ...input, additionalProperties: true }).secrets).toEqual(['anything'])
  })

  test('a schema may be a function, as those of some libraries are', () => {
    const validate = (value: unknown) => ({ value })
    const standard = { version: 1, vendor: 'test', validate, jsonSchema: { input: () => ({ type: 'object' }) } }
    const input = Object.assign(() => {}, { '~standard': standard })
    expect(tool({ ...base, input } as never).jsonSchema).toEqual({ type: 'object' })
    expect(() => tool({ ...base, input: () => {} } as never)).toThrow('input must be a schema')
  })

  test('a tool may be made from another', () => {
    expect(tool({ ...echo, name: 'again' } as never).name).toBe('again')
  })

  test.each<[object, string]>([
    [{ timeoutMs: 5 }, 'unknown field "timeoutMs"'],
    [{ withdraw: () => {} }, 'unknown field "withdraw"'],
    [{ aproval: 'always' }, 'Did you mean "approval"?'],
  ])('externalTool %j', (more, message) => {
    const { run: _, ...rest } = base
    expect(() => externalTool({ ...rest, ...more } as never)).toThrow(message)
  })

  const price = { input: 1, output: 2 }
  test.each<[object, string]>([
    [{ denny: ['x'] }, 'unknown field "denny". Did you mean "deny"?'],
    [{ deny: 'echo' }, 'deny must be a list'],
    [{ tools: echo }, 'tools must be a list'],
    [{ limits: { maxstep: 1 } }, 'unknown field "limits.maxstep". Did you mean "limits.maxSteps"?'],
    [{ limits: { maxSteps: 1.5 } }, 'limits.maxSteps must be a whole number'],
    [{ limits: { whenDenied: 'halt' } }, 'limits.whenDenied must be one of tell, stop; got "halt"'],
    [{ limits: { stateTimeoutsMs: { running: 1 } } }, 'Did you mean "limits.stateTimeoutsMs.RUNNING"?'],
    [{ limits: { budget: { token: 1 } } }, 'Did you mean "limits.budget.tokens"?'],
    [{ limits: { budget: { toolCalls: 1.5 } } }, 'limits.budget.toolCalls must be a whole number'],
    [{ limits: { budget: { money: 1, price: {} } } }, 'limits.budget.price needs both input and output'],
    [{ limits: { budget: { money: 1, price: { input: 1 } } } }, 'limits.budget.price needs both'],
    [{ limits: { budget: { money: 1, price: { ...price, in: 1 } } } }, 'unknown field "limits.budget.price.in"'],
    [
      { limits: { budget: { money: 1, price: { ...price, output: -1 } } } },
      'price.output must be a number, 0 or above',
    ],
    [{ limits: { budget: { money: 1, price: 3 } } }, 'limits.budget.price must be an object'],
    [{ temperature: 'hot' }, 'temperature must be a number'],
    [{ capabilities: [{ name: 'c', tool: [] }] }, 'capabilities[0].tool". Did you mean "capabilities[0].tools"?'],
    [{ capabilities: [{ name: 'c', deny: ['x'] }] }, 'unknown field "capabilities[0].deny"'],
    [{ capabilities: [{ tools: [] }] }, 'capabilities[0].name must be a text'],
    [
      { capabilities: [{ name: 'c', prompt: [{ title: 't', text: 't', untrustd: true }] }] },
      'Did you mean "capabilities',
    ],
    [{ middleware: [{ name: 'guard', onActng: () => {} }] }, 'Did you mean "middleware[0].onActing"?'],
    [{ middleware: [{ name: 'guard', onActing: true }] }, 'middleware[0].onActing must be a function'],
  ])('agent %j', (more, message) => {
    const invalid = expect.objectContaining({ code: 'agent_invalid', message: expect.stringContaining(message) })
    expect(() => agent({ ...helper, ...more } as never)).toThrow(invalid)
  })

  test('a middleware may be an instance of a class, whose hooks are looked at as well', () => {
    class Guard {
      readonly name = 'guard'
      readonly kept: string[] = []
      onModelcall(): void {}
    }
    expect(() => agent({ ...helper, middleware: [new Guard()] } as never)).toThrow(
      'Did you mean "middleware[0].onModelCall"?',
    )
  })

  test('a capability may have other methods', () => {
    const connected = { name: 'c', tools: [], close: () => {} }
    expect(agent({ ...helper, capabilities: [connected] } as never).name).toBe('helper')
  })

  test('slot, engine, needsApproval, rowFilter', async () => {
    const reduce = (it: number) => it
    expect(() => slot({ name: 'n', initial: 0, reduce, initail: 1 } as never)).toThrow('Did you mean "initial"?')
    const engine = (more: object) => createEngine({ backend: memory(), agents: [whole], ...more } as never)
    expect(() => engine({ onerror: () => {} })).toThrow('Did you mean "onError"?')
    expect(() => engine({ currentPrincipl: async () => undefined })).toThrow('Did you mean "currentPrincipal"?')
    expect(() => engine({ agents: [helper] })).toThrow('agents[0] must be made with agent()')
    const asked = { arguments: {}, reason: 'x', aprover: 'a:b' }
    expect(() => needsApproval(asked as never)).toThrow('Did you mean "approver"?')
    const columns = { owner: 'o', tennant: 't' }
    const context = { principal: { user: 'ann' } }
    await expect(rowFilter(context as never, columns as never)).rejects.toMatchObject({ code: 'row_columns_invalid' })
    const filter = await rowFilter(context as never, { owner: 'o' })
    expect(() => filter.toSql({ placehoder: () => '$1' } as never)).toThrow('Did you mean "placeholder"?')
  })
})

describe('an option that does not exist, or does not fit, decides nothing and starts nothing:', () => {
  const bad: [string, object, string][] = [
    ['run', { mod: 'explore' }, 'Did you mean "mode"?'],
    ['run', { denny: ['x'] }, 'Did you mean "deny"?'],
    ['run', { whenBusy: 'steal' }, 'whenBusy must be one of'],
    ['run', { maxSteps: 0.5 }, 'maxSteps must be a whole number'],
    ['run', { principal: 'ann' }, 'principal must be an object'],
    ['run', { principal: {} }, 'principal.user must be a text'],
    ['run', { attributes: 'x' }, 'attributes must be an object'],
    ['decide', { princpal: { user: 'mia' } }, 'Did you mean "principal"?'],
    ['interrupt', { turn: 't1' }, 'Did you mean "turnId"?'],
    ['pause', { turnid: 't1' }, 'Did you mean "turnId"?'],
    ['release', { principal: 5 }, 'principal must be an object'],
    ['compact', { dryrun: true }, 'Did you mean "dryRun"?'],
    ['resolve', { principle: { user: 'x' } }, 'Did you mean "principal"?'],
  ]
  test.each(bad)('%s %j', async (method, options, message) => {
    const { session } = await bench([{ text: 'Hi.' }])
    const methods = {
      run: () => session.run('Go.', options as never),
      decide: () => session.decide('a', { verdict: 'approved' }, options as never),
      interrupt: () => session.interrupt(options as never),
      pause: () => session.pause(options as never),
      release: () => session.release(options as never),
      compact: () => session.compact(options as never),
      resolve: () => session.resolve('c', { content: 'x' }, options as never),
    }
    const invalid = { code: 'invalid_option', message: expect.stringContaining(message) }
    await expect(methods[method as keyof typeof methods]()).rejects.toMatchObject(invalid)
    expect((await session.state()).seq).toBe(0)
  })

  test('the key of a session, the list of sessions, the status of a result', async () => {
    const { engine, session } = await bench([])
    expect(() => engine.session({ user: 'ann', sesion: 'x' } as never)).toThrow('Did you mean "session"?')
    expect(() => engine.sessions({ usr: 'ann' } as never)).toThrow('Did you mean "user"?')
    const result = session.resolve('c', { status: 'sucess', content: 'x' } as never)
    await expect(result).rejects.toMatchObject({ code: 'invalid_option' })
  })
})

describe('rules that deny in one turn', () => {
  test('must name a tool that there is, with a pattern that it reads', async () => {
    const { session } = await bench([{ text: 'Hi.' }], { tools: [echo] })
    for (const rule of ['ehco', 'echo(x)'])
      await expect(session.run('Go.', { deny: [rule] })).rejects.toMatchObject({ code: 'rule_invalid' })
    expect((await session.state()).seq).toBe(0)
    expect((await session.run('Go.', { deny: ['echo', 'e*'] })).status).toBe('finished')
  })

  test('of an agent that hands tasks on may name tools of others', async () => {
    const hand = tool({ name: 'hand', description: 'x', effects: ['delegate'], input: {}, run: () => '' })
    const { session } = await bench([{ text: 'Hi.' }], { tools: [hand] })
    expect((await session.run('Go.', { deny: ['shell'] })).status).toBe('finished')
    await expect(session.run('Go.', { deny: ['hand(x)'] })).rejects.toMatchObject({ code: 'rule_invalid' })
  })
})
