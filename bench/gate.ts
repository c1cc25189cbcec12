// The cost of one permission decision, with a large number of rules. Runs in its own process.
import { tool } from '@oxbow/core'
import { commandGuard } from '@oxbow/guard'
import { authorise, type Policy } from '../packages/core/src/permissions/gate.ts'
import { parseRule } from '../packages/core/src/permissions/rules.ts'

export interface GateJob {
  readonly calls: number
}

export interface GateRow {
  readonly what: string
  readonly rules: number
  readonly microseconds: number
}

const input = { type: 'object', properties: { command: { type: 'string' } } }
const shell = tool({
  name: 'shell',
  description: 'Runs a command.',
  effects: ['exec'],
  input,
  ...commandGuard({ cwd: '/tmp', roots: ['/tmp'] }),
  run: () => 'ran',
})
const save = tool({
  name: 'save',
  description: 'Saves.',
  effects: ['write'],
  input,
  matches: (pattern, { command }) => command === pattern,
  run: () => 'saved',
})

/** Half of them deny, half allow; the last of the allow rules is the one that decides. */
function policyOf(name: string, rules: number, last: string): Policy {
  const some = Array.from({ length: rules / 2 - 1 }, (_, n) => parseRule(`${name}(program-${n} sub-${n} *)`))
  return { mode: 'default', deny: some, ask: [], allow: [...some, parseRule(`${name}(${last})`), parseRule('other')] }
}

const COMMAND = 'cd /tmp && git log --oneline -n 20 | grep -v merge > /dev/null'

async function measure({ calls }: GateJob): Promise<GateRow[]> {
  const principal = { user: 'ann' }
  const rows: GateRow[] = []
  for (const [what, subject, command] of [
    ['patterns are compared', save, 'program sub'],
    ['a command is analysed', shell, COMMAND],
  ] as const)
    for (const rules of [10, 100]) {
      const policy = policyOf(subject.name, rules, 'program sub')
      const request = { tool: subject, arguments: { command }, principal, policy }
      const times = subject === shell ? Math.ceil(calls / 100) : calls
      for (let n = 0; n < times / 2; n++) await authorise(request)
      const startedAt = performance.now()
      for (let n = 0; n < times; n++) await authorise(request)
      rows.push({ what, rules, microseconds: ((performance.now() - startedAt) * 1_000) / times })
    }
  return rows
}

process.once('message', async (job: GateJob) => {
  process.send!(await measure(job))
  process.disconnect()
})
