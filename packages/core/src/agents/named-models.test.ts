// What opens models by name is installed for the whole process, so this file needs one of its own.
import { openaiChat } from '@oxbow/models'
import { describe, expect, test } from 'vitest'
import { agent } from '../index.ts'
import { openModelsWith } from '../internal.ts'

describe('models by name', () => {
  test('without something that opens them are refused with what to do', () => {
    expect(() => agent({ name: 'a', model: 'openai:gpt-5', instructions: '' })).toThrow(
      'agent a: model: nothing here opens models by name: got "openai:gpt-5". Import agent from "oxbow", or pass a Model.',
    )
    expect(() => agent({ name: 'a', model: 5 as never, instructions: '' })).toThrow(
      'agent a: model must be a Model or "provider:model": got 5.',
    )
  })

  test('are opened when the agent is defined', () => {
    const opened = openaiChat({ provider: 'test', model: 'm', baseUrl: 'http://localhost:1' })
    openModelsWith((name) => {
      expect(name).toBe('test:m')
      return opened
    })
    expect(agent({ name: 'a', model: 'test:m', instructions: '' }).model).toBe(opened)
  })
})
