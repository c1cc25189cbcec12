// CopilotKit's runtime in front of a service, served over HTTP, and a page that talks to it with CopilotKit's own
// client.
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { HttpAgent } from '@ag-ui/client'
import { CopilotKitCore } from '@copilotkit/core'
import { CopilotRuntime } from '@copilotkit/runtime/v2'
import { createCopilotNodeListener } from '@copilotkit/runtime/v2/node'
import type { Command, Outcome, Setup } from './protocol.ts'

const NAME = 'oxbow'
const { agentUrl, mode } = JSON.parse(process.argv[2]!) as Setup

const runtime = new CopilotRuntime({ agents: { [NAME]: new HttpAgent({ url: agentUrl }) } })
const server = createServer(createCopilotNodeListener({ runtime, basePath: '/api/copilotkit', mode }))
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
const runtimeUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/copilotkit`

// The client asks for the runtime's agents only where there is a window.
Object.assign(globalThis, { window: globalThis })

interface Page {
  connect(): Promise<Outcome>
  say(text: string): Promise<Outcome>
  stop(): void
}

/** As CopilotKit's provider and its chat do it. */
async function openPage(threadId: string): Promise<Page> {
  const core = new CopilotKitCore({ runtimeUrl, deferInitialConnection: true })
  const connected = new Promise<void>((resolve, reject) => {
    core.subscribe({
      onRuntimeConnectionStatusChanged({ status }) {
        if (status === 'connected') resolve()
        if (status === 'error') reject(new Error('the client cannot reach the runtime'))
      },
    })
  })
  core.connect()
  await connected
  // Pages offer their own tools and context; the service only uses those of its agent.
  core.addTool({ name: 'paint', description: 'Paints the page.', handler: async () => 'painted' })
  core.addContext({ description: 'The colour of the page', value: 'green' })

  const agent = core.getAgent(NAME)
  if (agent === undefined) throw new Error(`the runtime does not offer ${NAME}`)
  agent.threadId = threadId
  let events: Outcome['events'][number][] = []
  let errors: Outcome['errors'][number][] = []
  agent.subscribe({ onEvent: ({ event }) => void events.push({ ...event }) })
  core.subscribe({ onError: ({ code, error }) => void errors.push({ code, message: error.message }) })
  const outcomeOf = async (work: () => Promise<unknown>): Promise<Outcome> => {
    events = []
    errors = []
    await work()
    return { events, messages: [...agent.messages], errors }
  }
  return {
    connect: () => outcomeOf(() => core.connectAgent({ agent })),
    say: (text) =>
      outcomeOf(() => {
        agent.addMessage({ id: randomUUID(), role: 'user', content: text })
        return core.runAgent({ agent })
      }),
    stop: () => core.stopAgent({ agent }),
  }
}

let page: Page
process.on('message', async (command: Command) => {
  switch (command.type) {
    case 'open':
      page = await openPage(command.threadId)
      process.send!(await page.connect())
      break
    case 'say':
      process.send!(await page.say(command.text))
      break
    case 'stop':
      page.stop()
      break
  }
})
process.on('disconnect', () => process.exit(0))
process.send!('ready')
