import { expect, test } from 'vitest'
import { agent } from './index.ts'

test('with the umbrella package an agent may name its model', () => {
  expect(agent({ name: 'a', model: 'offline', instructions: '' }).model.id).toBe('offline:offline')
  expect(() => agent({ name: 'a', model: 'foo', instructions: '' })).toThrow(
    /^Unknown model "foo"\. Use provider:model, for example openai:gpt-5\. Providers: openai, /,
  )
})
