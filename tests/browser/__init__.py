"""Conversations with the page of `crow web`, in a real Chromium."""
