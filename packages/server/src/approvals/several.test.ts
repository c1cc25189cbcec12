import { type ToolDefinition, tool } from '@oxbow/core'
import { describe, expect, test } from 'vitest'
import { json, rigs } from '../test.fixture.ts'

const start = rigs()

type Surface = {
  readonly name: string
  readonly submit: [path: string, body: object]
  readonly resume: string
  /** How a decision names its call. */
  readonly on: (callId: string, approved: boolean) => object
}

const surfaces: Surface[] = [
  {
    name: 'A resumed task',
    submit: ['/agent/task', { taskId: 't1', message: 'Go.' }],
    resume: '/agent/task/t1/resume',
    on: (callId, approved) => ({ callId, approved }),
  },
  {
    name: 'A resumed task of the Agent Protocol',
    submit: ['/tasks', { task_id: 't1', input: 'Go.' }],
    resume: '/tasks/t1/resume',
    on: (toolCallId, approved) => ({ toolCallId, approved }),
  },
]

describe.each(surfaces)('$name', ({ submit, resume, on }) => {
  async function waiting() {
    const ran: string[] = []
    const writing = (name: string, more: Partial<ToolDefinition> = {}) =>
      tool({
        name,
        description: 'Writes.',
        effects: ['write'],
        input: {},
        run: () => {
          ran.push(name)
          return 'written'
        },
        ...more,
      })
    const rig = await start({
      agent: { tools: [writing('one'), writing('other', { approver: 'boss:ok' })] },
      replies: [{ calls: [{ name: 'one' }, { name: 'other' }] }, { text: 'Done.' }],
    })
    await rig.post(...submit)
    const session = rig.engine.session({ tenant: 'default', user: 'default', session: 't1' })
    const { approvals } = await session.wait('t1')
    const [one, other] = approvals.map((it) => it.callId) as [string, string]
    const stored = async () => (await session.events(0)).filter((it) => it.type === 'approval.resolved')
    return { ran, one, other, stored, session, decide: (decisions: object[]) => rig.post(resume, { decisions }) }
  }

  test('decides nothing when the caller may not decide on every named call', async () => {
    const { ran, one, other, stored, decide, session } = await waiting()
    const answer = await decide([on(one, true), on(other, true)])
    expect([answer.status, (await json(answer)).error.code]).toEqual([403, 'approval_forbidden'])
    expect(await stored()).toEqual([])
    expect((await session.result('t1'))?.approvals).toHaveLength(2)
    expect(ran).toEqual([])
  })

  test('decides nothing when two decisions name the same call', async () => {
    const { ran, one, stored, decide } = await waiting()
    const answer = await decide([on(one, true), on(one, false)])
    expect(answer.status).toBe(400)
    expect((await json(answer)).error).toMatchObject({
      code: 'decision_invalid',
      message: expect.stringMatching(/Two decisions are about approval_\w+\. Nothing was decided/),
    })
    expect(await stored()).toEqual([])
    expect(ran).toEqual([])
  })
})
