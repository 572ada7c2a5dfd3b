const { readFileSync } = require('node:fs');
const { defineConfig } = require('@medusajs/framework/utils');

const { databaseUrl, quittance } = JSON.parse(readFileSync('settings.json', 'utf8'));
const http = { storeCors: '', adminCors: '', authCors: '', jwtSecret: 'of-a-test', cookieSecret: 'of-a-test' };

module.exports = defineConfig({
  projectConfig: { databaseUrl, http, databaseDriverOptions: { ssl: false } },
  admin: { disable: true },
  modules: [
    {
      resolve: '@medusajs/medusa/payment',
      options: { webhook_delay: 50, providers: [{ resolve: 'quittance-medusa', id: 'quittance', options: quittance }] },
    },
  ],
});
