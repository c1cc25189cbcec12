import { expect, test } from 'vitest'
import { z } from 'zod'
import { json, rigs } from './test.fixture.ts'

const start = rigs()

interface Operation {
  operationId: string
  parameters?: { name: string; in: string; required: boolean; schema: object }[]
  requestBody?: { content: { 'application/json': { schema: object } } }
  responses: Record<string, { description: string; content: Record<string, { schema: object }> }>
}

test('/openapi.json documents exactly the routes that exist', async () => {
  const { get, service } = await start()
  const document = await json(get('/openapi.json'))
  expect(document.openapi).toBe('3.1.0')
  const documented = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods as object).map((method) => `${method.toUpperCase()} ${path}`),
  )
  const registered = service.app.routes
    .filter((it) => it.method !== 'ALL')
    .map((it) => `${it.method} ${it.path.replace(/:(\w+)/g, '{$1}')}`)
  expect(registered.length).toBeGreaterThan(10)
  expect(documented.toSorted()).toEqual([...new Set(registered)].toSorted())
})

test('/openapi.json has the structure of OpenAPI 3.1', async () => {
  const { get } = await start()
  const document = await json(get('/openapi.json'))
  const ids = new Set<string>()
  expect(document.info).toMatchObject({ title: expect.any(String), version: expect.any(String) })
  const schemas: object[] = [document.components.schemas.Error]
  for (const [path, methods] of Object.entries<Record<string, Operation>>(document.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      expect(['get', 'post', 'delete']).toContain(method)
      expect(ids).not.toContain(operation.operationId)
      ids.add(operation.operationId)
      const placeholders = [...path.matchAll(/\{(\w+)\}/g)].map((it) => it[1])
      const parameters = operation.parameters ?? []
      const inPath = parameters.filter((it) => it.in === 'path')
      expect(inPath.map((it) => it.name)).toEqual(placeholders)
      for (const it of parameters) {
        expect(['path', 'query', 'header']).toContain(it.in)
        if (it.in === 'path') expect(it.required).toBe(true)
        schemas.push(it.schema)
      }
      if (operation.requestBody) schemas.push(operation.requestBody.content['application/json'].schema)
      expect(Object.keys(operation.responses).some((status) => /^2\d\d$/.test(status))).toBe(true)
      for (const [status, response] of Object.entries(operation.responses)) {
        expect(status).toMatch(/^(\d{3}|default)$/)
        expect(response.description).toMatch(/./)
        for (const { schema } of Object.values(response.content)) schemas.push(schema)
      }
    }
  }
  for (const schema of schemas) {
    const reference = (schema as { $ref?: string }).$ref
    if (reference === undefined) z.fromJSONSchema(schema as z.core.JSONSchema.JSONSchema)
    else expect(reference).toBe('#/components/schemas/Error')
  }
})

test('the documented rule for a session id is the enforced one', async () => {
  const { get } = await start()
  const document = await json(get('/openapi.json'))
  const schema = document.paths['/api/sessions/{sessionId}/messages'].get.parameters[0].schema
  expect(new RegExp(schema.pattern).test('..')).toBe(false)
  expect(new RegExp(schema.pattern).test('a.b')).toBe(true)
})
