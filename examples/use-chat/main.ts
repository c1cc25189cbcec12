// The chat in a browser: the route and the page on one port. A program of yours has its own server and its own sign-in.
import { fileURLToPath } from 'node:url'
import { serve } from '@hono/node-server'
import { agent, createEngine, memory, modelFromEnvironment, tool } from 'oxbow'
import { rolldown } from 'rolldown'
import { z } from 'zod'
import { chatRoute } from './chat-route.ts'

const pay = tool({
  name: 'pay_invoice',
  description: 'Pays an invoice.',
  effects: ['write'],
  input: z.object({ invoice: z.string() }),
  run: ({ invoice }) => `Invoice ${invoice} is paid.`,
})
const helper = agent({ name: 'helper', model: modelFromEnvironment(process.env), instructions: 'Help.', tools: [pay] })
const engine = createEngine({ backend: memory(), agents: [helper] })
await engine.start()

const bundle = await rolldown({
  input: fileURLToPath(new URL('page.tsx', import.meta.url)),
  logLevel: 'silent',
  transform: { define: { 'process.env.NODE_ENV': '"production"' } },
})
const { output } = await bundle.generate({ format: 'es', minify: true })
const page = `<!doctype html><title>Chat</title><div id="root"></div><script type="module">${output[0].code.replaceAll('</script', '<\\/script')}</script>`

async function answer(request: Request): Promise<Response> {
  const { pathname } = new URL(request.url)
  if (pathname === '/api/chat' && request.method === 'POST') return chatRoute(engine, request, 'ann@example.com')
  if (pathname === '/') return new Response(page, { headers: { 'content-type': 'text/html; charset=utf-8' } })
  return new Response('Not found.', { status: 404 })
}

const server = serve({ fetch: answer, hostname: '127.0.0.1', port: Number(process.env.PORT ?? 3000) }, ({ port }) =>
  console.log(`Open http://127.0.0.1:${port} and write: Pay invoice "7". Ctrl-C stops it.`),
)
process.once('SIGINT', async () => {
  server.close()
  await engine.stop()
  process.exit()
})
