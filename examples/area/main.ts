import { agent, createEngine, memory, modelFromEnvironment, tool } from 'oxbow'
import { z } from 'zod'

const area = tool({
  name: 'calculate_area',
  description: 'Calculates the area of a rectangle.',
  effects: ['read'],
  input: z.object({ width: z.number(), height: z.number() }),
  run: ({ width, height }) => `The area is ${width * height}.`,
})
const helper = agent({ name: 'helper', model: modelFromEnvironment(process.env), instructions: 'Help.', tools: [area] })
const engine = createEngine({ backend: memory(), agents: [helper] })
console.log((await engine.session({ user: 'ann' }).run('Calculate the area of 3 by 4.')).text)
await engine.stop()
