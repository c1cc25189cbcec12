// Servers that die, hang, flood or send garbage: what the agent learns, and that nothing runs twice or stays behind.
import { gate, until } from '@oxbow/testing'
import { describe, expect, test } from 'vitest'
import { callOf, connected, program, rawServer, talking } from './mcp.fixture.ts'

const alive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

describe('Y12: a server that is a program', () => {
  test.each(['good', 'old', 'noisy', 'banner', 'marked', 'batches'])(
    'is connected when it is %s',
    async (behaviour) => {
      const { servers } = await connected({ p: program(behaviour) })
      expect(servers.status()[0]).toMatchObject({
        state: 'connected',
        transport: 'stdio',
        protocolVersion: '2025-11-25',
      })
      expect(servers.tools.map((it) => it.name)).toContain('environment')
    },
  )

  test.each([
    ['noisy', 2],
    ['banner', 1],
  ])('that writes other text to standard output has it counted: %s', async (behaviour, lines) => {
    const { servers } = await connected({ p: program(behaviour) })
    expect(servers.status()[0]!.stdoutNoise).toMatchObject({ lines })
  })

  test('that writes a banner instead of an answer has it quoted', async () => {
    await expect(connected({ p: program('chatty') }, { connectTimeoutMs: 1_500 })).rejects.toMatchObject({
      message: expect.stringContaining('1 line on stdout is not JSON-RPC, the last: Starting …'),
    })
  })

  test('has only the listed variables and PATH in its environment', async () => {
    process.env.OXBOW_TEST_SECRET = 'not for others'
    const it = await talking({ p: program('good', { env: { LISTED: 'yes' } }) }, [
      callOf('environment'),
      { text: 'Told.' },
    ])
    await it.session.run('Go.')
    const [finished] = await it.finished()
    expect(finished!.content).toEqual([{ type: 'text', text: 'LISTED PATH' }])
  })

  test('that dies in the middle of a call leaves its outcome unknown, and is restarted without repeating the call', async () => {
    const it = await talking({ p: program('good') }, [callOf('die'), callOf('twice'), { text: 'Told.' }])
    await it.session.run('Go.')
    const [died, next] = await it.finished()
    expect(died).toMatchObject({ status: 'unknown', error: { code: 'outcome_unknown' } })
    expect(next).toMatchObject({ status: 'success', content: [{ type: 'text', text: 'first' }] })
    expect(it.servers.status()[0]!.state).toBe('connected')
  })

  test('that does not answer is abandoned at the call’s time limit', async () => {
    const it = await talking({ p: program('good', { timeoutMs: 300 }) }, [callOf('hang'), { text: 'Told.' }])
    await it.session.run('Go.')
    expect((await it.finished())[0]).toMatchObject({ status: 'timed_out' })
  })

  test('may send garbage between its messages', async () => {
    const it = await talking({ p: program('good') }, [callOf('garbage'), callOf('twice'), { text: 'Told.' }])
    await it.session.run('Go.')
    expect((await it.finished()).map((call) => call.status)).toEqual(['success', 'success'])
  })

  test('may flood its client with progress', async () => {
    const it = await talking({ p: program('good') }, [callOf('flood'), { text: 'Told.' }])
    await it.session.run('Go.')
    expect((await it.finished())[0]).toMatchObject({ status: 'success', content: [{ text: 'flooded' }] })
  })

  test('that exceeds the message limit is cut off', async () => {
    const it = await talking({ p: program('good', { maxMessageBytes: 100_000 }) }, [
      callOf('huge', { length: 200_000 }),
      { text: 'Told.' },
    ])
    await it.session.run('Go.')
    expect((await it.finished())[0]).toMatchObject({
      status: 'unknown',
      error: { message: expect.stringContaining('sent a message of more than 100000 bytes') },
    })
  })

  test('that returns a long result has it stored, and the model sees part of it', async () => {
    const it = await talking({ p: program('good') }, [callOf('huge', { length: 50_000 }), { text: 'Told.' }])
    await it.session.run('Go.')
    const [finished] = await it.finished()
    expect(finished!.artifact).toBeDefined()
    expect(JSON.stringify(finished!.content).length).toBeLessThan(20_000)
  })

  test('that cannot start fails the agent’s start, without its secrets', async () => {
    const starting = connected({ p: program('broken', { env: { KEY: 'super-secret' } }) })
    const error: Error = await starting.then(
      () => expect.unreachable(),
      (it: Error) => it,
    )
    expect(error).toMatchObject({ code: 'mcp_unreachable', message: expect.stringContaining('cannot start') })
    expect(error.message).not.toContain('super-secret')
  })

  test('that is optional is retried, and its tools are available at the next build', async () => {
    const server = await rawServer()
    await server.stop()
    const { servers, notices } = await connected({ raw: { url: server.url, required: false } })
    expect(servers.tools).toEqual([])
    expect(notices).toEqual([
      {
        level: 'warn',
        server: 'raw',
        message: expect.stringMatching(
          /^unreachable: .*ECONNREFUSED.*\. Continuing without its tools\. Retrying in [01]\.\d s\.$/,
        ),
      },
    ])
    expect(servers.health()).toEqual([
      { name: 'mcp:raw', required: false, ok: false, detail: servers.status()[0]!.problem!.message },
    ])
    expect(servers.status()[0]).toMatchObject({ state: 'reconnecting', problem: { code: 'mcp_unreachable' } })
    await server.start()
    await until(() => servers.status()[0]!.state === 'connected', { deadlineMs: 10_000 })
    expect(servers.status()[0]!.added).toEqual(['look'])
    expect(servers.health()[0]).toMatchObject({ ok: true, detail: 'connected' })
    await until(() => notices.some((it) => it.message.startsWith('Connected.')))
    expect(servers.tools.map((it) => it.name)).toEqual(['look'])
  })

  test('whose list changes: a removed tool reports it, a new one is available at the next build', async () => {
    const it = await talking({ p: program('good') }, [
      callOf('grow'),
      { text: 'Grown.' },
      callOf('hang'),
      { text: 'Told.' },
    ])
    await it.session.run('Go.')
    await until(() => it.servers.status()[0]!.added.length > 0)
    expect(it.servers.status()[0]).toMatchObject({ added: ['grown'], gone: ['hang'] })
    await it.session.run('Go on.')
    expect((await it.finished())[1]).toMatchObject({ status: 'error', error: { code: 'mcp_tool_gone' } })
    expect(it.servers.tools.map((tool) => tool.name)).toContain('grown')
  })

  test.each(['parent', 'stubborn'])('does not leave a process behind when it is a %s', async (behaviour) => {
    const it = await talking({ p: program(behaviour) }, [callOf('pids'), { text: 'Told.' }])
    await it.session.run('Go.')
    const [finished] = await it.finished()
    const [block] = finished!.content
    const pids = JSON.parse(block?.type === 'text' ? block.text : '') as number[]
    expect(pids.every(alive)).toBe(true)
    await it.servers.close()
    await until(() => !pids.some(alive))
  })
})

describe('Y12: a server over HTTP', () => {
  test('that forgot the session in a restart gets a new one, and the call once', async () => {
    const server = await rawServer()
    const it = await talking({ raw: { url: server.url } }, [callOf('look'), callOf('look'), { text: 'Told.' }])
    server.intercept = ({ method }) => {
      if (method === 'tools/call') server.intercept = undefined
      if (method === 'tools/call') server.session = 'second'
    }
    await it.session.run('Go.')
    expect((await it.finished()).map((call) => call.status)).toEqual(['success', 'success'])
  })

  test('that breaks the connection in the middle of a call leaves its outcome unknown, and is not called again', async () => {
    const server = await rawServer((_message, request) => void request.socket.destroy())
    const it = await talking({ raw: { url: server.url, tools: ['*'] } }, [callOf('change'), { text: 'Told.' }])
    await it.session.run('Go.')
    expect((await it.finished())[0]).toMatchObject({ status: 'unknown', error: { code: 'outcome_unknown' } })
    expect(server.received.filter((message) => message.method === 'tools/call')).toHaveLength(1)
  })

  test('that ends its stream without an answer leaves the outcome unknown at once', async () => {
    const server = await rawServer((_message, _request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end(': nothing to say\n\n')
    })
    const it = await talking({ raw: { url: server.url, tools: ['*'] } }, [callOf('change'), { text: 'Told.' }])
    await it.session.run('Go.')
    expect((await it.finished())[0]).toMatchObject({ status: 'unknown', error: { code: 'outcome_unknown' } })
  })

  test('that loses the answer of a trusted read-only tool yields a retryable error', async () => {
    const server = await rawServer((_message, request) => void request.socket.destroy())
    const it = await talking({ raw: { url: server.url, trustReadOnly: true } }, [callOf('look'), { text: 'Told.' }])
    await it.session.run('Go.')
    expect((await it.finished())[0]).toMatchObject({ status: 'error', error: { code: 'mcp_no_answer' } })
  })

  test('that quotes request headers in an error does not get them into the journal', async () => {
    const server = await rawServer((_message, request, response) => {
      response.writeHead(400).end(`no luck with ${request.headers.authorization}`)
    })
    const headers = { authorization: 'Bearer very-secret-token' }
    const it = await talking({ raw: { url: server.url, headers } }, [callOf('look'), { text: 'Told.' }])
    await it.session.run('Go.')
    const [finished] = await it.finished()
    expect(finished).toMatchObject({ status: 'error', error: { code: 'mcp_refused' } })
    expect(finished!.error!.message).toContain('HTTP 400: no luck with')
    expect(JSON.stringify(await it.events())).not.toContain('very-secret-token')
    expect(server.headers.every((it) => it.authorization === 'Bearer very-secret-token')).toBe(true)
  })

  test('that exceeds the message limit leaves the outcome unknown', async () => {
    const server = await rawServer(() => ({ content: [{ type: 'text', text: 'x'.repeat(200_000) }] }))
    const it = await talking({ raw: { url: server.url, tools: ['*'], maxMessageBytes: 100_000 } }, [
      callOf('change'),
      { text: 'Told.' },
    ])
    await it.session.run('Go.')
    expect((await it.finished())[0]).toMatchObject({
      status: 'unknown',
      error: { message: expect.stringContaining('more than 100000 bytes') },
    })
  })

  test('that redirects to another origin is not followed', async () => {
    const other = await rawServer()
    const server = await rawServer()
    server.intercept = (_message, _request, response) => {
      response.writeHead(307, { location: other.url }).end()
      return true
    }
    await expect(connected({ raw: { url: server.url } })).rejects.toMatchObject({ code: 'mcp_unreachable' })
    expect(other.received).toEqual([])
  })

  test('that already has a stream for its client (409) still works', async () => {
    const server = await rawServer()
    let streams = 0
    server.intercept = (_message, request, response) => {
      if (request.method !== 'GET') return false
      streams++
      response.writeHead(409).end()
      return true
    }
    const it = await talking({ raw: { url: server.url } }, [callOf('look'), { text: 'Told.' }])
    await it.session.run('Go.')
    expect((await it.finished())[0]!.status).toBe('success')
    expect(streams).toBe(1)
    expect(it.servers.status()[0]!.state).toBe('connected')
  })

  test('that requires an unconfigured sign-in fails the start with that reason', async () => {
    const server = await rawServer()
    server.intercept = (_message, _request, response) => {
      response.writeHead(401, { 'www-authenticate': 'Bearer' }).end()
      return true
    }
    await expect(connected({ raw: { url: server.url } })).rejects.toMatchObject({ code: 'mcp_unauthorized' })
  })

  test('that is slow to start is awaited, but not forever', async () => {
    const held = gate()
    const server = await rawServer()
    server.intercept = async ({ method }) => {
      if (method === 'initialize') await held.pass()
      return false
    }
    const starting = connected({ raw: { url: server.url } }, { connectTimeoutMs: 200 })
    await expect(starting).rejects.toMatchObject({ code: 'mcp_unreachable' })
    held.open()
  })

  test('is notified when a call is cancelled', async () => {
    const reached = gate()
    const server = await rawServer(() => {
      void reached.pass()
      return new Promise(() => {})
    })
    const it = await talking({ raw: { url: server.url, tools: ['*'] } }, [callOf('change')])
    const running = it.session.run('Go.', { turnId: 't1' })
    await reached.reached
    await it.session.interrupt({ turnId: 't1' })
    expect((await running).status).toBe('cancelled')
    await until(() => server.received.some((message) => message.method === 'notifications/cancelled'))
  })
})
